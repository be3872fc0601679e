// A short stream of the tiny model, ready to be audited in a mode.
#pragma once

#include "audit/audit.h"
#include "audit/runs.h"
#include "backends/backends.h"
#include "score/tiny_score.h"

namespace fairway::score_test {

struct Slice {
  explicit Slice(const ScoringMode& mode, int64_t targets = 340) : machine(2) {
    const Recipe recipe = tiny_recipe();
    input.model = tiny_model(recipe);
    input.stream = tiny_stream(targets);
    input.settings = settings_for_slice(settings_of(recipe, mode), input.stream, recipe.model.bos, false);
    input.context = machine.context();
    input.make_executor = [](Queue& queue) { return make_cpu_executor(queue); };
    input.records_alone = [this](std::span<const uint16_t> stream) {
      return records_hash(AuditRuns(input).run_otherwise(stream, 1, 0));
    };
    input.budgets = {.artifact_bytes = 1000, .train_seconds = 10, .score_seconds = 1};
    input.probes = 3;
    input.controls = false;
  }
  Machine machine;
  AuditInput input;
};

}  // namespace fairway::score_test
