// Room on the disk: a run says before its first step that its checkpoints do not fit, and one that goes on counts those it has.
#include "train/run_folder.h"

#include <gmock/gmock.h>

#include <fstream>

#include "base/error.h"
#include "data/scratch_folder.h"

namespace fairway {
namespace {

namespace fs = std::filesystem;

TEST(RunFolder, CountsWhatARunHasAlreadyTowardsItsRoom) {
  constexpr uintmax_t kLarge = uintmax_t{64}
                               << 30;  // far more than other programs free or fill meanwhile; none of it is written
  const ScratchFolder scratch;
  const Recipe recipe = load_recipe("smoke");
  const uintmax_t needed = fs::space(scratch / ".").available + kLarge / 2;
  {
    const RunFolder fresh(scratch / "run", recipe, false);
    try {
      fresh.require_space(needed);
      FAIL() << "more than the disk has";
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("--out " + (scratch / "run").string()),
                                               testing::HasSubstr("checkpoints and weights need")));
    }
  }
  fs::create_directories(scratch / "run" / "checkpoint");
  std::ofstream(scratch / "run" / "checkpoint" / "latest.safetensors").put('x');
  fs::resize_file(scratch / "run" / "checkpoint" / "latest.safetensors", kLarge);
  const RunFolder resumed(scratch / "run", recipe, true);
  EXPECT_NO_THROW(resumed.require_space(needed));
}

}  // namespace
}  // namespace fairway
