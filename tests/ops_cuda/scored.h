// A small model of the published width and a stream, scored on a backend.
#pragma once

#include <cstring>

#include "backends/backends.h"
#include "base/rng.h"
#include "model/initialize.h"
#include "score/evaluator.h"

namespace fairway::cuda_test {

inline constexpr int64_t kTargets = 1300;

inline Recipe small_best(const ScoringMode& mode) {
  Recipe recipe = load_recipe("best", {});
  recipe.model.layers = 5;
  recipe.model.loop = {.start = 1, .end = 2, .count = 1, .at_fraction = 0};
  recipe.model.lanes.start = 4;
  recipe.model.vocab = 1024;
  recipe.score.mode = mode;
  recipe.score.ngram.order = 1;  // hints at many targets of random text
  recipe.score.ngram.threshold = 0.05;
  recipe.score.context = 256;
  recipe.score.lora.rank = 80;
  recipe.score.lora.lr = 1e-3;
  recipe.score.slot.positions = 192;
  return recipe;
}

inline ScoredModel model_of(const Recipe& recipe) {
  const auto load = [recipe](ParamStore& to) {
    ThreadPool pool(2);
    initialize(to, recipe.model, 1, pool);
    Rng rng(5);
    float* values = to.flat_values().as<float>();
    for (int64_t i = 0; i < to.flat_values().numel(); ++i) values[i] += static_cast<float>(0.02 * rng.normal());
  };
  return {recipe, {.looped = true}, load, {}};
}

// Documents of 1 to 700 tokens.
inline std::vector<uint16_t> stream_of(const Recipe& recipe) {
  Rng rng(7);
  std::vector<uint16_t> out{static_cast<uint16_t>(recipe.model.bos)};
  while (static_cast<int64_t>(out.size()) <= kTargets) {
    const bool ends = rng.below(200) == 0;
    out.push_back(static_cast<uint16_t>(ends ? static_cast<uint64_t>(recipe.model.bos) : 3 + rng.below(40)));
  }
  return out;
}

struct Scored {
  ScoreLedger ledger;
  double mean = 0;
};

inline Scored scored(const Recipe& recipe, Backend backend, std::span<const uint16_t> stream,
                     std::vector<int64_t> captured = {}) {
  Queue queue(2);
  const auto executor = make_executor(backend, queue);
  Scored out{ScoreLedger(stream)};
  out.ledger.capture(captured);
  make_evaluator(model_of(recipe), {.score = recipe.score}, {executor.get(), &queue.pool()})->run(out.ledger, {});
  for (int64_t target = 1; target <= kTargets; ++target) out.mean += static_cast<double>(out.ledger.nll(target)) / kTargets;
  return out;
}

// Targets whose loss, digest or version differ.
inline int64_t different_records(const Scored& x, const Scored& y) {
  int64_t different = 0;
  for (int64_t target = 1; target <= kTargets; ++target) {
    const float a = x.ledger.nll(target), b = y.ledger.nll(target);
    different += std::memcmp(&a, &b, sizeof a) != 0 || x.ledger.digest(target) != y.ledger.digest(target) ||
                         x.ledger.version(target) != y.ledger.version(target)
                     ? 1
                     : 0;
  }
  return different;
}

}  // namespace fairway::cuda_test
