#include "textcode/token_code.h"

#include <algorithm>

#include "base/error.h"
#include "tokenizer/vocabulary.h"

namespace fairway::textcode {
namespace {

int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Calls code(weights, total, token) for every token, in one order for writer and reader.
template <class Code>
void walk_lanes(std::span<int> tokens, TokenPredictor& predictor, const TokenProgress& progress, const Code& code) {
  const auto count = static_cast<int64_t>(tokens.size());
  const int64_t context = predictor.context(), lanes = predictor.lanes(), windows = up(count, context);
  std::vector<int32_t> inputs(static_cast<size_t>(lanes));
  int64_t done = 0;
  const auto place = [&](int64_t lane, int64_t round, int64_t position) {  // of the token to code; -1: none
    const int64_t window = windows * lane / lanes + round, at = window * context + position;
    return window < windows * (lane + 1) / lanes && at < count ? at : -1;
  };
  for (int64_t round = 0; round < up(windows, lanes); ++round) {
    predictor.restart();
    for (int64_t position = 0; position < context; ++position) {
      bool any = false;
      for (int64_t lane = 0; lane < lanes; ++lane) {
        const int64_t at = place(lane, round, position);
        const bool begins = at <= 0 || (round == 0 && position == 0);
        inputs[static_cast<size_t>(lane)] = begins ? kBosId : tokens[static_cast<size_t>(at - 1)];
        any = any || at >= 0;
      }
      if (!any) break;
      predictor.step(inputs);
      for (int64_t lane = 0; lane < lanes; ++lane) {
        const int64_t at = place(lane, round, position);
        if (at < 0) continue;
        code(predictor.weights(lane), predictor.total(lane), tokens[static_cast<size_t>(at)]);
        ++done;
      }
      if (progress) progress(done, count);
    }
  }
}

}  // namespace

int64_t lanes_for(int64_t tokens, int64_t context, int64_t most) {
  const int64_t windows = std::max<int64_t>(1, up(tokens, context)), rounds = up(windows, std::max<int64_t>(1, most));
  return up(windows, rounds);
}

void put_tokens(RangeEncoder& out, std::span<const int> tokens, TokenPredictor& predictor, const TokenProgress& progress) {
  std::vector<int> known(tokens.begin(), tokens.end());
  walk_lanes(known, predictor, progress, [&](std::span<const uint32_t> weights, uint64_t total, int token) {
    FAIRWAY_ASSERT(token >= 0 && static_cast<size_t>(token) < weights.size(), "a token outside of the vocabulary");
    uint64_t start = 0;
    for (int v = 0; v < token; ++v) start += weights[static_cast<size_t>(v)];
    out.put({start, weights[static_cast<size_t>(token)]}, total);
  });
}

std::vector<int> get_tokens(RangeDecoder& in, int64_t count, TokenPredictor& predictor, const TokenProgress& progress) {
  std::vector<int> tokens(static_cast<size_t>(count));
  walk_lanes(tokens, predictor, progress, [&](std::span<const uint32_t> weights, uint64_t total, int& token) {
    const uint64_t slot = in.slot(total);
    uint64_t start = 0;
    size_t v = 0;
    while (v + 1 < weights.size() && start + weights[v] <= slot) start += weights[v++];
    in.take({start, weights[v]}, total);
    token = static_cast<int>(v);
  });
  return tokens;
}

}  // namespace fairway::textcode
