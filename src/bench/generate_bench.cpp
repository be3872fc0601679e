#include "bench/generate_bench.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "artifact/artifact.h"
#include "backends/backends.h"
#include "base/error.h"
#include "base/rng.h"
#include "generate/packed_executor.h"
#include "generate/sample.h"
#include "quant/quantize_model.h"
#include "score/eval_model.h"

namespace fairway::bench {
namespace {

constexpr double kLogitErrorLimit = 3e-5;
constexpr int64_t kCheckedTokens = 64;
constexpr int kReads = 15;

Recipe recipe_of(const QuantizedModel& model) {
  Recipe recipe;
  recipe.model = model.model;
  if (model.train_length > 0) recipe.data.seq_len = model.train_length;
  return recipe;
}

// Largest difference between the decoder's logits and those of a whole forward pass over the dequantized weights.
double logit_error(const QuantizedModel& model, Decoder& decoder, Queue& queue) {
  const auto executor = make_executor(Backend::cpu, queue);
  EvalModel whole(recipe_of(model), 1, kCheckedTokens, {.looped = model.looped}, *executor);
  dequantize(model, whole.params());
  Rng rng(3);
  for (int32_t& token : whole.tokens()) token = static_cast<int32_t>(rng.below(static_cast<uint64_t>(model.model.vocab)));
  std::fill(whole.targets().begin(), whole.targets().end(), 0);
  whole.run();
  double worst = 0, largest = 0;
  decoder.restart();
  for (int64_t t = 0; t < kCheckedTokens; ++t) {
    decoder.step({&whole.tokens()[static_cast<size_t>(t)], 1});
    const auto have = decoder.logits(0), want = whole.logits(t);
    for (size_t i = 0; i < want.size(); ++i) {
      const double difference = std::abs(static_cast<double>(have[i]) - static_cast<double>(want[i]));
      if (!(difference <= worst)) worst = difference;
      largest = std::max(largest, std::abs(static_cast<double>(want[i])));
    }
  }
  return worst / largest;
}

// Every thread reads its part of `bytes` bytes that lie in memory as the packed weights do.
double memory_rate(size_t bytes, ThreadPool& pool) {
  const Memory memory("bandwidth", bytes);
  const auto words = static_cast<int64_t>(bytes / sizeof(uint64_t));
  auto* data = reinterpret_cast<uint64_t*>(memory.data());
  std::fill_n(data, words, uint64_t{1});
  std::vector<uint64_t> sums(static_cast<size_t>(pool.threads()));
  std::vector<double> rates;
  for (int i = 0; i < kReads; ++i) {
    const double took = measure_once([&] {
      pool.parallel_for(pool.threads(), [&](int64_t part) {
        uint64_t sum = 0;
        for (int64_t w = words * part / pool.threads(); w < words * (part + 1) / pool.threads(); ++w) sum += data[w];
        sums[static_cast<size_t>(part)] = sum;
      });
    });
    rates.push_back(static_cast<double>(bytes) / took * 1e-9);
  }
  FAIRWAY_ASSERT(sums[0] > 0, "the sums are used, so that nothing is left out");
  return median(rates);
}

}  // namespace

GenerateBench bench_generate(std::string_view artifact, const GenerateBenchOptions& options, Queue& queue) {
  GenerateBench out;
  QuantizedModel model;
  std::unique_ptr<PackedWeights> weights;
  std::unique_ptr<PackedExecutor> executor;
  std::unique_ptr<Decoder> decoder;
  const int32_t first = 1;
  out.read_ms = 1e3 * measure_once([&] {
                  ArtifactReader reader(artifact, "artifact", {.pool = &queue.pool()});
                  weights = std::make_unique<PackedWeights>(reader.model());
                  reader.read([&](QuantizedTensor& tensor) { weights->take(tensor); });
                  weights->finish(reader.model(), queue.pool());
                });
  model = read_artifact(artifact, "artifact", {.pool = &queue.pool()});
  out.first_token_ms = out.read_ms + 1e3 * measure_once([&] {
                                       executor = std::make_unique<PackedExecutor>(*weights, queue);
                                       decoder = std::make_unique<Decoder>(recipe_of(model), weights->params(), 1,
                                                                           std::max(options.tokens + 1, kCheckedTokens),
                                                                           ModelStage{.looped = model.looped}, *executor);
                                       decoder->step({&first, 1});
                                     });
  out.error = logit_error(model, *decoder, queue);
  if (!(out.error <= kLogitErrorLimit)) throw WorkError("generate: the logits are not the scorer's; nothing was timed");
  std::vector<double> rates;
  for (int text = 0; text < options.texts; ++text) {
    const SampleOptions how{.tokens = options.tokens, .seed = static_cast<uint64_t>(text)};
    const double took = measure_once([&] { sample(*decoder, {first}, how); });
    rates.push_back(static_cast<double>(options.tokens) / took);
  }
  out.tokens_per_second = median(rates);
  out.slowest = *std::min_element(rates.begin(), rates.end());
  out.fastest = *std::max_element(rates.begin(), rates.end());
  out.weight_bytes = weights->bytes();
  out.gb_per_s = static_cast<double>(out.weight_bytes) * out.tokens_per_second * 1e-9;
  out.memory_gb_per_s = memory_rate(out.weight_bytes, queue.pool());
  return out;
}

}  // namespace fairway::bench
