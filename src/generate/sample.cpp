#include "generate/sample.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace fairway {
namespace {

// Keeps the likeliest weights until they have `share` of all; of equal ones the first.
void keep_share(std::vector<double>& weights, double share) {
  std::vector<size_t> order(weights.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return weights[a] > weights[b]; });
  double left = share * std::accumulate(weights.begin(), weights.end(), 0.0);
  size_t kept = 0;
  while (kept < order.size() && left > 0) left -= weights[order[kept++]];
  for (size_t i = std::max<size_t>(kept, 1); i < order.size(); ++i) weights[order[i]] = 0;
}

}  // namespace

int32_t draw(std::span<const float> logits, const SampleOptions& options, Rng& rng, std::vector<double>& weights) {
  if (options.vocab > 0) logits = logits.first(std::min(logits.size(), static_cast<size_t>(options.vocab)));
  const auto likeliest = static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  if (options.temperature <= 0) return likeliest;
  double floor = -INFINITY;
  if (options.top_k > 0 && options.top_k < static_cast<int64_t>(logits.size())) {
    std::vector<float> sorted(logits.begin(), logits.end());
    std::nth_element(sorted.begin(), sorted.begin() + (options.top_k - 1), sorted.end(), std::greater<>());
    floor = static_cast<double>(sorted[static_cast<size_t>(options.top_k - 1)]);
  }
  const auto top = static_cast<double>(logits[static_cast<size_t>(likeliest)]);
  weights.resize(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    const auto logit = static_cast<double>(logits[i]);
    weights[i] = logit >= floor ? std::exp((logit - top) / options.temperature) : 0;
  }
  if (options.top_p < 1) keep_share(weights, options.top_p);
  double left = rng.uniform01() * std::accumulate(weights.begin(), weights.end(), 0.0);
  for (size_t i = 0; i < weights.size(); ++i) {
    if (left < weights[i]) return static_cast<int32_t>(i);
    left -= weights[i];
  }
  return likeliest;
}

int32_t draw(std::span<const float> logits, const SampleOptions& options, Rng& rng) {
  std::vector<double> scratch;
  return draw(logits, options, rng, scratch);
}

namespace {

// Shows the decoder the last `count` tokens of the text, from the beginning of its window.
void read_again(Decoder& model, const std::vector<int32_t>& text, int64_t count) {
  model.restart();
  for (size_t at = text.size() - static_cast<size_t>(count); at < text.size(); ++at) model.step({&text[at], 1});
}

}  // namespace

std::vector<int32_t> sample(Decoder& model, std::vector<int32_t> text, const SampleOptions& options,
                            const std::function<bool(int32_t)>& each) {
  FAIRWAY_ASSERT(model.rows() == 1 && !text.empty(), "sampling continues a prompt in one row");
  const size_t given = text.size();
  Rng rng(options.seed);
  std::vector<double> scratch;
  read_again(model, text, std::min<int64_t>(static_cast<int64_t>(given), model.length()));
  while (static_cast<int64_t>(text.size() - given) < options.tokens) {
    const int32_t next = draw(model.logits(0), options, rng, scratch);
    if (next == options.stop) break;
    text.push_back(next);
    if (each && !each(next)) break;
    if (static_cast<int64_t>(text.size() - given) == options.tokens) break;
    if (model.position() < model.length())
      model.step({&next, 1});
    else
      read_again(model, text, std::max<int64_t>(1, model.length() / 2));
  }
  return {text.begin() + static_cast<std::ptrdiff_t>(given), text.end()};
}

}  // namespace fairway
