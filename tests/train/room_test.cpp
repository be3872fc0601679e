// Room for checkpoints: what a resumed run has already written is replaced, so it is not asked for again.
#include <gmock/gmock.h>

#include <fstream>

#include "base/error.h"
#include "data/scratch_folder.h"
#include "train/run_folder.h"

namespace fairway {
namespace {

namespace fs = std::filesystem;

TEST(Room, FilesOfAResumedRunCount) {
  const ScratchFolder scratch;
  const Recipe recipe = load_recipe("smoke", {});
  const RunFolder folder(scratch / "run", recipe, false);
  constexpr uintmax_t kMore = uintmax_t{1} << 34;  // beyond what others free or fill meanwhile
  const auto too_much = static_cast<size_t>(fs::space(scratch / "run").available + kMore);
  EXPECT_THAT([&] { folder.require_space(too_much); }, testing::ThrowsMessage<InputError>(testing::HasSubstr("MiB are free")));
  fs::create_directories(folder.checkpoints());
  const fs::path latest = folder.checkpoints() / "latest.safetensors";
  std::ofstream(latest).close();
  fs::resize_file(latest, 2 * kMore);  // a hole: it takes no room
  EXPECT_NO_THROW(folder.require_space(too_much));
}

}  // namespace
}  // namespace fairway
