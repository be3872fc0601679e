// Which cards the program works on, decided from facts; and where there is a GPU, that it is one of them.
#include "ops/cuda/device.h"

#include <gmock/gmock.h>

#include "base/error.h"

namespace fairway {
namespace {

using cuda::DeviceFacts;
using cuda::DeviceInfo;
using cuda::Support;
using testing::AllOf;
using testing::HasSubstr;
using Answer = DeviceFacts::Answer;

DeviceInfo card(const std::string& name, int major, int minor, int index = 0) { return {name, 1 << 30, major, minor, index}; }
const cuda::Built kForHopper{{90}, 0}, kForAll{{80, 86, 89, 90, 100, 120}, 80};
DeviceFacts with_cards(std::vector<DeviceInfo> cards, cuda::Built built = kForHopper) {
  return {.in_build = true, .built = std::move(built), .answer = Answer::devices, .devices = std::move(cards)};
}

TEST(DeviceSupport, AHopperIsUsed) {
  for (const cuda::Built& built : {kForHopper, kForAll}) {
    const Support support = supports(with_cards({card("NVIDIA H200", 9, 0)}, built));
    ASSERT_EQ(support.usable.size(), 1U);
    EXPECT_EQ(support.usable[0].name, "NVIDIA H200");
    EXPECT_EQ(support.problem, "");
  }
}

TEST(DeviceSupport, ABuildForAllRunsFromAmpereOn) {
  for (const auto& [major, minor] :
       {std::pair{8, 0}, {8, 6}, {8, 7}, {8, 9}, {9, 0}, {10, 0}, {10, 3}, {11, 0}, {12, 0}, {12, 1}, {13, 0}})
    EXPECT_EQ(supports(with_cards({card("a card", major, minor)}, kForAll)).usable.size(), 1U) << major << "." << minor;
  for (const auto& [major, minor] : {std::pair{6, 1}, {7, 0}, {7, 5}}) {
    const Support support = supports(with_cards({card("NVIDIA T4", major, minor)}, kForAll));
    EXPECT_TRUE(support.usable.empty()) << major << "." << minor;
    EXPECT_THAT(support.problem, HasSubstr("built for 8.0, 8.6, 8.9, 9.0, 10.0, 12.0 and all later ones"));
    EXPECT_THAT(support.remedy, AllOf(HasSubstr("CPU"), HasSubstr("Ampere")));
  }
}

TEST(DeviceSupport, MachineCodeRunsOnItsOwnGenerationFromItsOwnMemberOn) {
  const cuda::Built some{{86, 100}, 0};
  EXPECT_FALSE(some.runs_on(card("NVIDIA A100", 8, 0)));
  EXPECT_TRUE(some.runs_on(card("NVIDIA L4", 8, 9)));
  EXPECT_TRUE(some.runs_on(card("NVIDIA B300", 10, 3)));
  EXPECT_FALSE(some.runs_on(card("NVIDIA GeForce RTX 5090", 12, 0)));
  const cuda::Built later{{86}, 100};  // PTX runs from its own capability on
  EXPECT_FALSE(later.runs_on(card("NVIDIA H100", 9, 0)));
  EXPECT_TRUE(later.runs_on(card("NVIDIA GeForce RTX 5090", 12, 0)));
}

TEST(DeviceSupport, HopperHasItsOwnKernelsUnlessAskedOtherwise) {
  using cuda::KernelPath, cuda::path_of;
  EXPECT_EQ(path_of(card("NVIDIA H100", 9, 0), nullptr), KernelPath::sm90);
  EXPECT_EQ(path_of(card("NVIDIA H100", 9, 0), ""), KernelPath::sm90);
  EXPECT_EQ(path_of(card("NVIDIA H100", 9, 0), "generic"), KernelPath::generic);
  EXPECT_EQ(path_of(card("NVIDIA A100", 8, 0), nullptr), KernelPath::generic);
  EXPECT_EQ(path_of(card("NVIDIA B200", 10, 0), nullptr), KernelPath::generic);
  try {
    path_of(card("NVIDIA H100", 9, 0), "hopper");
    FAIL() << "taken";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("FAIRWAY_CUDA_PATH is \"hopper\""), HasSubstr("expected \"generic\"")));
  }
}

TEST(DeviceSupport, PeaksAreThoseOfTheDatasheets) {  // teraflops: bf16 with sums in float, float
  struct Card {
    const char* name;
    int capability, processors;
    double gigahertz, bf16, f32;
  };
  for (const Card& c : {Card{"H200 SXM", 90, 132, 1.98, 989.4, 66.9}, Card{"A100 SXM", 80, 108, 1.41, 312, 19.5},
                        Card{"A40", 86, 84, 1.74, 149.7, 37.4}, Card{"L40S", 89, 142, 2.52, 362, 91.6},
                        Card{"B200", 100, 148, 1.85, 2250, 70}, Card{"RTX PRO 6000", 120, 188, 2.617, 503.8, 126}}) {
    const cuda::PeakFlops peaks = cuda::peak_flops(c.capability, c.processors, c.gigahertz * 1e9);
    EXPECT_NEAR(peaks.bf16 * 1e-12, c.bf16, 0.015 * c.bf16) << c.name;
    EXPECT_NEAR(peaks.f32 * 1e-12, c.f32, 0.015 * c.f32) << c.name;
  }
  EXPECT_NEAR(cuda::peak_of_hopper().bf16 * 1e-12, 989.4, 0.1);  // what the tables of docs/performance.md compare with
}

// A packaged program opens cuBLASLt itself; without a card there is nothing to miss.
TEST(DeviceSupport, AMissingLibraryIsNamedWithWhatBringsIt) {
  DeviceFacts facts = with_cards({card("NVIDIA H200", 9, 0)});
  facts.runtime_version = 13000;
  facts.missing_library = "libcublasLt.so.13";
  const Support support = supports(facts);
  EXPECT_TRUE(support.usable.empty());
  EXPECT_EQ(support.problem, "libcublasLt.so.13 was not found");
  EXPECT_THAT(support.remedy, AllOf(HasSubstr("apt-get install libcublas-13-0"), HasSubstr("pip install nvidia-cublas")));
  facts.devices = {card("NVIDIA T4", 7, 5)};
  EXPECT_THAT(supports(facts).problem, HasSubstr("NVIDIA T4"));
}

TEST(DeviceSupport, OtherCardsAreRefusedByName) {
  struct Other {
    const char* name;
    int major, minor;
    const char* arch;
  };
  for (const Other& other : {Other{"NVIDIA A100-SXM4-80GB", 8, 0, "8.0"}, Other{"NVIDIA GeForce RTX 4090", 8, 9, "8.9"},
                             Other{"NVIDIA B200", 10, 0, "10.0"}, Other{"a later Hopper", 9, 1, "9.1"}}) {
    const Support support = supports(with_cards({card(other.name, other.major, other.minor)}));
    EXPECT_TRUE(support.usable.empty()) << other.name;
    EXPECT_THAT(support.problem, AllOf(HasSubstr(other.name), HasSubstr(other.arch), HasSubstr("built for 9.0 only")));
    EXPECT_THAT(support.remedy, HasSubstr("CPU"));
  }
}

TEST(DeviceSupport, OfSeveralKindsTheHoppersAreUsed) {
  const Support support =
      supports(with_cards({card("NVIDIA T4", 7, 5, 0), card("NVIDIA H100", 9, 0, 1), card("NVIDIA H100", 9, 0, 2)}));
  ASSERT_EQ(support.usable.size(), 2U);
  EXPECT_EQ(support.usable[0].index, 1);
  EXPECT_EQ(support.usable[1].index, 2);
  EXPECT_EQ(support.problem, "");
  const Support none = supports(with_cards({card("NVIDIA T4", 7, 5), card("NVIDIA L4", 8, 9)}));
  EXPECT_THAT(none.problem, AllOf(HasSubstr("NVIDIA T4 has compute capability 7.5"), HasSubstr("NVIDIA L4")));
}

TEST(DeviceSupport, EveryReasonHasItsSentence) {
  const std::vector<std::pair<DeviceFacts, std::string>> cases{
      {{.in_build = false}, "built without CUDA"},
      {{.in_build = true, .answer = Answer::driver_insufficient, .runtime_version = 12080}, "has no NVIDIA driver"},
      {{.in_build = true, .answer = Answer::driver_insufficient, .driver_version = 11040, .runtime_version = 12080},
       "too old: it knows CUDA 11.4, this program was built with CUDA 12.8"},
      {{.in_build = true, .answer = Answer::no_device}, "has no CUDA device"},
      {{.in_build = true, .answer = Answer::no_device, .visible_told = true}, "CUDA_VISIBLE_DEVICES is \"\""},
      {{.in_build = true, .answer = Answer::no_device, .visible_told = true, .visible = "-1"},
       "CUDA_VISIBLE_DEVICES is \"-1\""},
      {{.in_build = true, .answer = Answer::failed, .failure = "system not yet initialized"}, "system not yet initialized"}};
  std::vector<std::string> told;
  for (const auto& [facts, says] : cases) {
    const Support support = supports(facts);
    EXPECT_TRUE(support.usable.empty());
    EXPECT_THAT(support.problem, HasSubstr(says));
    EXPECT_NE(support.remedy, "");
    EXPECT_THAT(told, testing::Not(testing::Contains(support.problem)));
    told.push_back(support.problem);
  }
}

TEST(DeviceFailure, EachKindSaysWhatToDo) {
  using cuda::Failure, cuda::sentence_of;
  const size_t mib = size_t{1} << 20;
  EXPECT_THAT(sentence_of({Failure::Kind::no_room, "cudaMalloc", "out of memory", 512 * mib, 120 * mib}),
              AllOf(HasSubstr("no room for 512 MiB"), HasSubstr("120 MiB are free"), HasSubstr("train.micro_batch_tokens"),
                    HasSubstr("nvidia-smi")));
  EXPECT_THAT(sentence_of({Failure::Kind::no_room, "cudaGraphInstantiate", "out of memory"}),
              AllOf(HasSubstr("no room (0 MiB are free; cudaGraphInstantiate"), testing::Not(HasSubstr("for 0"))));
  EXPECT_THAT(sentence_of({Failure::Kind::lost, "cudaStreamSynchronize", "uncorrectable ECC error"}),
              AllOf(HasSubstr("the device is lost"), HasSubstr("cudaStreamSynchronize: uncorrectable ECC error")));
  EXPECT_THAT(sentence_of({Failure::Kind::kernel, "cudaStreamSynchronize", "an illegal memory access"}),
              AllOf(HasSubstr("a kernel failed"), HasSubstr("an illegal memory access")));
  EXPECT_EQ(sentence_of({Failure::Kind::other, "cudaEventCreate", "invalid argument"}), "cudaEventCreate: invalid argument");
}

TEST(CudaDevice, ABuildWithoutCudaHasNoDevices) {
  if (cuda::in_build()) GTEST_SKIP() << "this build has CUDA";
  EXPECT_TRUE(cuda::devices().empty());
}

TEST(CudaDevice, ABuildWithCudaHasCodeForHopperAndNothingOlderThanAmpere) {
  if (!cuda::in_build()) GTEST_SKIP() << "this build has no CUDA";
  const cuda::Built built = cuda::built();
  EXPECT_THAT(built.code, testing::AllOf(testing::Contains(90), testing::Each(testing::Ge(80))));
  EXPECT_EQ(built.ptx > 0, built.code.size() > 1) << built.text();
}

TEST(CudaDevice, RunsWhatWasBuilt) {
  const auto& devices = cuda::devices();
  if (devices.empty()) GTEST_SKIP() << cuda::support().problem;
  EXPECT_TRUE(cuda::built().runs_on(devices.front())) << devices.front().name;
  EXPECT_GT(devices.front().memory_bytes, size_t{1} << 30);
}

}  // namespace
}  // namespace fairway
