// Held-out data of a folder, opened here and handed to training as a function only.
#pragma once

#include <filesystem>
#include <optional>

#include "score/plain.h"
#include "train/loop.h"

namespace fairway::app {

struct HeldOut {
  std::vector<uint16_t> tokens;
  ByteTables bytes;
};
// The validation shards of `folder` with its tokenizer.model; nothing when the folder has no validation shards.
// Tokens are checked against the recipe's vocabulary, so that a run does not fail after its training.
std::optional<HeldOut> open_held_out(const std::filesystem::path& folder, const Recipe& recipe);
void require_one_window(const HeldOut& held_out, int64_t length, const std::string& folder);  // InputError when it lacks one

// A scorer for the training loop; `data` and `executor` must outlive it. Made at the first call, per stage.
Validator make_validator(const Recipe& recipe, const HeldOut& data, Executor& executor, bool quiet);

int64_t scoring_rows(const Recipe& recipe);  // windows scored at once

}  // namespace fairway::app
