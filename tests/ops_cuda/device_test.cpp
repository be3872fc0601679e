// Which cards the program works on, decided from facts; and where there is a GPU, that it is one of them.
#include "ops/cuda/device.h"

#include <gmock/gmock.h>

namespace fairway {
namespace {

using cuda::DeviceFacts;
using cuda::DeviceInfo;
using cuda::Support;
using testing::AllOf;
using testing::HasSubstr;
using Answer = DeviceFacts::Answer;

DeviceInfo card(const std::string& name, int major, int minor, int index = 0) { return {name, 1 << 30, major, minor, index}; }
DeviceFacts with_cards(std::vector<DeviceInfo> cards) {
  return {.in_build = true, .answer = Answer::devices, .devices = std::move(cards)};
}

TEST(DeviceSupport, AHopperIsUsed) {
  const Support support = supports(with_cards({card("NVIDIA H200", 9, 0)}));
  ASSERT_EQ(support.usable.size(), 1U);
  EXPECT_EQ(support.usable[0].name, "NVIDIA H200");
  EXPECT_EQ(support.problem, "");
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
    EXPECT_THAT(support.problem, AllOf(HasSubstr(other.name), HasSubstr(other.arch), HasSubstr("built for 9.0 (sm_90a")));
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

TEST(CudaDevice, IsAHopper) {
  const auto& devices = cuda::devices();
  if (devices.empty()) GTEST_SKIP() << cuda::support().problem;
  EXPECT_EQ(devices.front().arch(), "9.0") << devices.front().name << " cannot run kernels built for sm_90a";
  EXPECT_GT(devices.front().memory_bytes, size_t{1} << 30);
}

}  // namespace
}  // namespace fairway
