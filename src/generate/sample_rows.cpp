#include "generate/sample_rows.h"

#include <algorithm>

#include "base/error.h"
#include "generate/sample.h"

namespace fairway {
namespace {

struct RowState {
  Rng rng;
  std::vector<double> weights;
};

constexpr int64_t kWaitEvery = 64;  // tokens asked of a device before the host waits: for signals and the progress line

// The program draws: every number it needs is drawn first, from the rows' own generators and in their order.
void draw_rows(Decoder& decoder, std::vector<RowState>& states, std::span<const int32_t> first, std::span<int32_t> out,
               const std::function<void(int64_t)>& each) {
  const int64_t rows = decoder.rows(), length = static_cast<int64_t>(out.size()) / rows;
  std::vector<double> chances(static_cast<size_t>(rows * decoder.length()));
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t t = 1; t < length; ++t)
      chances[static_cast<size_t>(row * decoder.length() + t)] = states[static_cast<size_t>(row)].rng.uniform01();
  decoder.begin_text(first, chances);
  for (int64_t t = 1;; ++t) {
    if (each) each(t);
    if (t == length) break;
    decoder.draw_next();
    if (t % kWaitEvery == 0) decoder.wait();
  }
  const std::span<const int32_t> text = decoder.text();
  for (int64_t row = 0; row < rows; ++row)
    std::copy_n(text.begin() + row * decoder.length(), length, out.begin() + row * length);
}

}  // namespace

void sample_rows(Decoder& decoder, const RowSampling& options, ThreadPool& pool, std::span<int32_t> out,
                 const std::function<void(int64_t)>& each) {
  const int64_t rows = decoder.rows(), length = static_cast<int64_t>(out.size()) / rows;
  FAIRWAY_ASSERT(
      options.vocab > 0 && length > 0 && length <= decoder.length() && length * rows == static_cast<int64_t>(out.size()),
      "rows to sample must fit the decoder");
  std::vector<RowState> states;
  std::vector<int32_t> next;
  for (int64_t row = 0; row < rows; ++row) {
    Rng& rng = states.emplace_back(RowState{Rng(options.seed, static_cast<uint64_t>(options.first_row + row)), {}}).rng;
    next.push_back(options.first_token >= 0 ? options.first_token
                                            : static_cast<int32_t>(rng.below(static_cast<uint64_t>(options.vocab))));
  }
  if (decoder.draws()) return draw_rows(decoder, states, next, out, each);
  const SampleOptions how{.temperature = options.temperature};
  decoder.restart();
  for (int64_t t = 0;; ++t) {
    for (int64_t row = 0; row < rows; ++row) out[static_cast<size_t>(row * length + t)] = next[static_cast<size_t>(row)];
    if (each) each(t + 1);
    if (t + 1 == length) return;
    decoder.step(next);
    pool.parallel_for(rows, [&](int64_t row) {
      RowState& state = states[static_cast<size_t>(row)];
      next[static_cast<size_t>(row)] = draw(decoder.logits(row), how, state.rng, state.weights);
    });
  }
}

}  // namespace fairway
