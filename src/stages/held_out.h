// Held-out data of a folder, opened here and handed to training as a function only.
#pragma once

#include <filesystem>
#include <optional>

#include "base/file_identity.h"
#include "comm/communicator.h"
#include "score/evaluator.h"
#include "score/metric.h"
#include "stages/tokenizer_check.h"
#include "train/loop.h"

namespace fairway {

struct HeldOut {
  std::vector<uint16_t> tokens;
  Vocabulary tokenizer;
  ByteTables bytes;
  std::vector<uint16_t> counts;  // bytes of each token where the folder has fineweb_val_bytes_*.bin, which then count
  std::vector<FileIdentity> shards, count_files;  // as they were read
  FileIdentity tokenizer_file;
  std::vector<std::string> notes;  // what could not be checked

  TargetBytes target_bytes() const { return counts.empty() ? TargetBytes(bytes) : TargetBytes(counts); }
};
// The validation shards of `folder` with its tokenizer.model, or `tokenizer` where it is named; nothing when the folder has no
// validation shards. Tokens are checked against the recipe's vocabulary, so that a run does not fail after its training; shards
// against the folder's manifest; the tokenizer against the manifest and, where it is given, against what the weights claim.
std::optional<HeldOut> open_held_out(const std::filesystem::path& folder, const Recipe& recipe,
                                     const Identities* claim = nullptr, const std::filesystem::path& tokenizer = {});
void require_one_window(int64_t tokens, int64_t length, const std::string& folder);  // InputError when it lacks one

// A scorer for the training loop; the arguments must outlive it. Ranks share the windows and all come to the score that one
// process would, bit for bit: every rank has to call it.
Validator make_validator(const Recipe& recipe, const HeldOut& data, const ScoreContext& context, Communicator& comm,
                         bool quiet);

}  // namespace fairway
