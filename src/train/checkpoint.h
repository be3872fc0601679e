// Checkpoints: everything a run needs to go on bit for bit, in one safetensors file with a checksum. The newest is
// checkpoint/latest.safetensors, the one before it previous.safetensors; a kill at any moment leaves one of them whole.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/safetensors.h"
#include "train/run_folder.h"
#include "train/trainer.h"

namespace fairway {

// What all steps of a run have in common; a checkpoint of another one is refused.
struct RunIdentity {
  std::string recipe;      // recipe_hash()
  std::string but_length;  // the same of the recipe without train.steps and train.seconds, which may grow
  std::string tokenizer;   // of the shards, Vocabulary::identity(); empty: not known
  std::string told_by;     // the file that tells the tokenizer
};

struct RunState {
  int64_t step = 0;      // steps done
  double elapsed = 0;    // seconds of training
  double next_step = 0;  // seconds the next step may take (Progress)
  ModelStage stage;      // switches that were made
  int64_t snapshots = 0;
  std::vector<std::byte> loader;
  UnwrittenRecords unwritten;  // of steps up to `step`; empty but on a disk in trouble
};

// `keep_clock`: only runs driven by the clock store their seconds, so that step-driven runs write the same bytes every time.
void save_checkpoint(const std::filesystem::path& folder, Trainer& trainer, const RunState& state, const RunIdentity& run,
                     bool keep_clock);

// Fills the trainer from the newest whole checkpoint; nothing when there is none. A damaged newest one falls back to the
// previous with a line on standard error; InputError when all are damaged or belong to another recipe or tokenizer.
std::optional<RunState> load_checkpoint(const std::filesystem::path& folder, Trainer& trainer, const RunIdentity& run);

size_t checkpoint_bytes(Trainer& trainer);

void require_whole(const Safetensors& checkpoint);  // InputError when its checksum is not that of its content

}  // namespace fairway
