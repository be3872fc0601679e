// What can be known before the clock starts: whether the recipe fits this machine's memory, its seconds a step, and its budget
// a file. Each refusal is one sentence: what, found, needed, what to change.
#pragma once

#include "comm/communicator.h"
#include "data/folder_tokenizer.h"
#include "stages/machine.h"
#include "stages/requests.h"

namespace fairway::app {

struct TrainingPlan {
  int64_t micro_batch_tokens = 0;
  std::string note;  // where they are fewer than the recipe's: why; goes to the run's log
};
// The recipe's micro-batch where it fits into memory, else the largest that does and divides what it must: it changes how sums
// are rounded, so nothing but memory changes it. A run that goes on keeps its own. Collective; rank 0's memory decides.
TrainingPlan plan_micro_batch(const TrainRequest& request, const Compute& compute, Communicator& comm);

// Training by the clock makes a step at least; the least time of one is known from its operations and the machine's peak.
void require_time_for_a_step(const Recipe& recipe, const Compute& compute, const Communicator& comm);

// The coarsest file is measured on weights as they are before training, with the tokenizer that it is to carry: the one named
// apart from the shards, or theirs.
void require_budget(const Recipe& recipe, const PackRequest& packing, const data::FolderTokenizer& tokenizer,
                    const Compute& compute);

}  // namespace fairway::app
