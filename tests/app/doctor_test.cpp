// What `fairway doctor` says would go wrong, case by case, and that each comes with what mends it.
#include <gmock/gmock.h>

#include "app/machine_problems.h"

namespace {

using namespace fairway::app;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

MachineState with_card() { return {.card_here = true, .cuda_in_build = true, .runtime_version = 13000}; }

TEST(Doctor, FindsNothingOnAGoodMachine) {
  EXPECT_THAT(problems_of({}), IsEmpty());
  MachineState state = with_card();
  state.memory_free = state.disk_free = 100 * kGiB;
  state.cards = {{.clock_mhz = 1980, .usual_clock_mhz = 1980, .watts = 700, .usual_watts = 700}};
  state.processor = {.mhz = 3500, .most_mhz = 3500, .driver = "intel_pstate", .governor = "powersave"};
  EXPECT_THAT(problems_of(state), IsEmpty());
}

TEST(Doctor, NamesWhyNoCardIsUsed) {
  MachineState state = with_card();
  state.cuda_problem = "the NVIDIA driver is too old: it knows CUDA 12.4, this program was built with CUDA 13.0";
  state.cuda_remedy = "update the driver";
  state.driver_too_old = true;
  EXPECT_THAT(problems_of(state),
              ElementsAre(AllOf(HasSubstr("too old"), HasSubstr("update the driver to 580 or a later one"))));
  state.runtime_version = 99000;
  EXPECT_THAT(problems_of(state), ElementsAre(testing::EndsWith("update the driver")));
  state.driver_too_old = false;
  state.cuda_problem = "NVIDIA T4 has compute capability 7.5, this program was built for 9.0 only";
  state.cuda_remedy = "use the CPU";
  state.cudnn = false;  // not asked for where no card is used
  EXPECT_THAT(problems_of(state), ElementsAre(state.cuda_problem + ": use the CPU"));
  state.cuda_in_build = false;
  EXPECT_THAT(problems_of(state), ElementsAre(testing::StartsWith("an NVIDIA GPU is here, but ")));
  state.card_here = false;
  EXPECT_THAT(problems_of(state), IsEmpty()) << "a machine without a card needs no CUDA";
}

TEST(Doctor, NamesAMissingCudnn) {
  MachineState state = with_card();
  state.cudnn = false;
  EXPECT_THAT(problems_of(state), ElementsAre(AllOf(HasSubstr("libcudnn.so.9"), HasSubstr("libcudnn9-cuda-13"))));
}

TEST(Doctor, NamesLimitsOfClocks) {
  MachineState state = with_card();
  state.cards = {{.index = 0, .clock_mhz = 1980, .usual_clock_mhz = 1980},
                 {.index = 3, .clock_mhz = 1200, .usual_clock_mhz = 1980, .watts = 450, .usual_watts = 700, .too_hot = true}};
  EXPECT_THAT(problems_of(state), ElementsAre(AllOf(HasSubstr("1200 of 1980 MHz"), HasSubstr("nvidia-smi -i 3 -rac")),
                                              AllOf(HasSubstr("450 of 700 W"), HasSubstr("nvidia-smi -i 3 -pl 700")),
                                              HasSubstr("GPU 3 is too hot")));
  state.cards = {{.index = 1, .short_of_power = true}};
  EXPECT_THAT(problems_of(state), ElementsAre(HasSubstr("GPU 1 gets too little power")));
  const MachineState slow{.processor = {.mhz = 1500, .most_mhz = 3500, .driver = "acpi-cpufreq", .governor = "powersave"}};
  EXPECT_THAT(problems_of(slow),
              ElementsAre(AllOf(HasSubstr("1500 of 3500 MHz"), HasSubstr("cpupower frequency-set -u 3500MHz")),
                          HasSubstr("cpupower frequency-set -g performance")));
}

TEST(Doctor, NamesLittleRoom) {
  MachineState state;
  state.memory_free = 0.5 * kGiB;
  state.disk_free = 1.5 * kGiB;
  state.vector_kernels = state.mpi_in_build = false;
  EXPECT_THAT(problems_of(state), ElementsAre(HasSubstr("only 0.5 GiB of memory"),
                                              AllOf(HasSubstr("only 1.5 GiB of disk"), HasSubstr("--out on another disk")),
                                              HasSubstr("no AVX2"), HasSubstr("libopenmpi-dev")));
}

}  // namespace
