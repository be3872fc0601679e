#include "bench/attention_bench.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/clock.h"
#include "base/error.h"
#include "base/rng.h"
#include "bench/step_bench.h"

namespace fairway::bench {
namespace {

struct Mix {
  std::string name;
  std::function<int64_t(Rng&)> length;  // of the next document, in tokens
};

std::vector<Mix> mixes(int64_t tokens) {
  const auto each = [](int64_t length) { return [=](Rng&) { return length; }; };
  const auto web = [](Rng& rng) { return static_cast<int64_t>(std::exp(6 + rng.normal())) + 1; };  // as web pages have
  return {{"web pages", web}, {"of 512", each(512)}, {"of 48", each(48)}, {"one of all", each(tokens)}};
}

struct Batch {
  std::vector<int32_t> tokens, targets, starts;
  Batch(const Recipe& recipe, int64_t count) : starts(static_cast<size_t>(count), 0) {
    Rng rng(7);
    for (auto* list : {&tokens, &targets})
      for (int64_t i = 0; i < count; ++i)
        list->push_back(static_cast<int32_t>(rng.below(static_cast<uint64_t>(recipe.model.vocab))));
  }
  void cut(const Mix& mix) {
    Rng rng(11);
    for (size_t i = 0, start = 0, end = 0; i < starts.size(); ++i) {
      if (i == end) {
        start = i;
        end = i + static_cast<size_t>(mix.length(rng));
      }
      starts[i] = static_cast<int32_t>(start);
    }
  }
  MicroBatch view() {
    const Spec spec{{static_cast<int64_t>(tokens.size())}, DType::i32};
    return {make_view(tokens.data(), spec), make_view(targets.data(), spec), make_view(starts.data(), spec)};
  }
  double keys() const {
    double total = 0;
    for (size_t i = 0; i < starts.size(); ++i) total += static_cast<double>(i) - static_cast<double>(starts[i]) + 1;
    return total / static_cast<double>(starts.size());
  }
};

const OpLine& line_of(const std::vector<OpLine>& ops, std::string_view name) {
  const auto at = std::ranges::find(ops, name, &OpLine::name);
  FAIRWAY_ASSERT(at != ops.end(), "a training step has attention");
  return *at;
}

AttentionBench::Line time_passes(Executor& executor, Session& session, double seconds) {
  AttentionBench::Line line;
  std::vector<double> forward, backward;
  const double begun = seconds_now();
  do {
    const std::vector<OpLine> ops = op_table(executor, session, 1);
    line.all_forward = line_of(ops, "attention");
    line.all_backward = line_of(ops, "attention'");
    forward.push_back(line.all_forward.seconds / static_cast<double>(line.all_forward.calls));
    backward.push_back(line.all_backward.seconds / static_cast<double>(line.all_backward.calls));
  } while (forward.size() < 3 || seconds_now() - begun < seconds);
  line.forward = timing_of(std::move(forward));
  line.backward = timing_of(std::move(backward));
  return line;
}

}  // namespace

AttentionBench bench_attention(const Recipe& recipe, double seconds, Executor& executor, Executor& truth, ThreadPool& pool) {
  constexpr double kTolerance = 1e-9;
  AttentionBench result;
  for (const SamplerKind sampler : {SamplerKind::sequential, SamplerKind::docpack}) {
    Recipe of = recipe;
    of.data.sampler = sampler;
    const CompareResult checked = compare_recipe(small_recipe(of, 1, 33), {}, truth, executor, kTolerance, pool);
    if (checked.first)
      throw WorkError("the backend differs from the reference: " + checked.first->op + " of " + checked.first->label +
                      "; nothing was timed");
    result.checked = std::max(result.checked, checked.worst);
    const Geometry geometry = micro_batch_geometry(of);
    Trainer trainer(of, geometry, executor);
    trainer.initialize(1, pool);
    Batch batch(of, geometry.tokens);
    const auto add = [&](std::string name, double keys) {
      trainer.load(batch.view(), 1);
      trainer.session({}).run();
      executor.wait();
      AttentionBench::Line line = time_passes(executor, trainer.session({}), seconds);
      line.documents = std::move(name);
      line.keys = keys;
      result.lines.push_back(std::move(line));
    };
    if (sampler == SamplerKind::sequential) {
      const int64_t length = of.data.seq_len;
      add("rows of " + std::to_string(length), static_cast<double>(length + 1) / 2);
      continue;
    }
    for (const Mix& mix : mixes(geometry.tokens)) {
      batch.cut(mix);
      add(mix.name, batch.keys());
    }
  }
  return result;
}

}  // namespace fairway::bench
