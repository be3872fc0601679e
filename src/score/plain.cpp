#include "score/plain.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/error.h"

namespace fairway {

double Score::bits_per_byte() const { return bytes > 0 ? nats / std::log(2.0) / static_cast<double>(bytes) : 0; }

Score score_plain(EvalModel& model, std::span<const uint16_t> stream, const ByteTables& bytes, int64_t vocab,
                  const ScoreProgress& progress) {
  const auto begun = std::chrono::steady_clock::now();
  const int64_t length = model.row_length(), batch = model.rows() * length;
  const int64_t targets = stream.empty() ? 0 : (static_cast<int64_t>(stream.size()) - 1) / length * length;
  if (targets == 0)
    throw InputError("validation holds " + std::to_string(stream.size()) + " tokens, fewer than one window of " +
                     std::to_string(length) + " and its target");
  if (const auto past = std::find_if(stream.begin(), stream.end(), [&](uint16_t id) { return id >= vocab; });
      past != stream.end()) {
    throw InputError("validation token " + std::to_string(*past) + " at " + std::to_string(past - stream.begin()) +
                     " is outside of the model's vocabulary of " + std::to_string(vocab));
  }
  Score score{.tokens = targets};
  for (int64_t first = 0; first < targets; first += batch) {
    const int64_t count = std::min(batch, targets - first);
    for (int64_t i = 0; i < batch; ++i) {  // a short last batch repeats its first window; those are not counted
      const int64_t at = i < count ? first + i : first + i % length;
      model.tokens()[static_cast<size_t>(i)] = stream[static_cast<size_t>(at)];
      model.targets()[static_cast<size_t>(i)] = stream[static_cast<size_t>(at + 1)];
    }
    model.run();
    for (int64_t i = 0; i < count; ++i) {
      score.nats += static_cast<double>(model.nll()[static_cast<size_t>(i)]);
      score.bytes += bytes.of(stream[static_cast<size_t>(first + i)], stream[static_cast<size_t>(first + i + 1)]);
    }
    if (progress) progress(first + count, targets);
  }
  score.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return score;
}

}  // namespace fairway
