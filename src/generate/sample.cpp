#include "generate/sample.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace fairway {

int32_t draw(std::span<const float> logits, const SampleOptions& options, Rng& rng) {
  const auto likeliest = static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  if (options.temperature <= 0) return likeliest;
  double floor = -INFINITY;
  if (options.top_k > 0 && options.top_k < static_cast<int64_t>(logits.size())) {
    std::vector<float> sorted(logits.begin(), logits.end());
    std::nth_element(sorted.begin(), sorted.begin() + (options.top_k - 1), sorted.end(), std::greater<>());
    floor = static_cast<double>(sorted[static_cast<size_t>(options.top_k - 1)]);
  }
  const auto top = static_cast<double>(logits[static_cast<size_t>(likeliest)]);
  std::vector<double> weights(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    const auto logit = static_cast<double>(logits[i]);
    weights[i] = logit >= floor ? std::exp((logit - top) / options.temperature) : 0;
  }
  double left = rng.uniform01() * std::accumulate(weights.begin(), weights.end(), 0.0);
  for (size_t i = 0; i < weights.size(); ++i) {
    if (left < weights[i]) return static_cast<int32_t>(i);
    left -= weights[i];
  }
  return likeliest;
}

std::vector<int32_t> sample(EvalModel& model, std::vector<int32_t> prompt, const SampleOptions& options,
                            const std::function<void(int32_t)>& each) {
  FAIRWAY_ASSERT(model.rows() == 1 && !prompt.empty(), "sampling continues a prompt in one row");
  const int64_t length = model.row_length();
  std::vector<int32_t> made;
  Rng rng(options.seed);
  std::fill(model.targets().begin(), model.targets().end(), 0);
  while (static_cast<int64_t>(made.size()) < options.tokens) {
    const int64_t count = std::min<int64_t>(static_cast<int64_t>(prompt.size()), length);
    std::copy(prompt.end() - count, prompt.end(), model.tokens().begin());
    std::fill(model.tokens().begin() + count, model.tokens().end(), 0);  // causal: what follows cannot be seen
    model.run();
    const int32_t next = draw(model.logits(count - 1), options, rng);
    if (next == options.stop) break;
    prompt.push_back(next);
    made.push_back(next);
    if (each) each(next);
  }
  return made;
}

}  // namespace fairway
