// The kernels for Arm still compile, where the cross-compiler is installed; make aarch64 builds all of it and runs it.
#include <gtest/gtest.h>

#include <cstdlib>

#include "supply/command_text.h"

namespace {

class ArmKernels : public testing::TestWithParam<const char*> {};

// Headers of Debian's that are the same for every machine are found where this one's are.
TEST_P(ArmKernels, Compile) {
  if (std::system("command -v aarch64-linux-gnu-g++ >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "aarch64-linux-gnu-g++ is not installed (scripts/setup aarch64)";
  const std::string compiler =
      "aarch64-linux-gnu-g++ -std=c++20 -O1 -Wall -Wextra -Werror -Wno-psabi -fsigned-char -march=armv8.2-a+dotprod -S -o "
      "/dev/null";
  command_text(compiler + " -I '" FAIRWAY_SOURCE_DIR "/src' '" FAIRWAY_SOURCE_DIR "/src/" + std::string(GetParam()) + "' 2>&1");
}

INSTANTIATE_TEST_SUITE_P(Units, ArmKernels,
                         testing::Values("ops/cpu/isa/neon.cpp", "ops/cpu/isa/packed_neon.cpp", "ops/cpu/isa/packed_dot.cpp",
                                         "ops/cpu/isa/dispatch.cpp", "ops/cpu/packed_rows.cpp", "textcode/exact_generic.cpp"));

}  // namespace
