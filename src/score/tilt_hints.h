// Hints of a whole stream (scoring spec §2.7, record spec §7.4): for each target the token that followed the same tokens
// before, and how strongly the distribution is tilted to it. The hint of target t is a function of x_0 … x_{t−1} alone, though
// all are made in one pass before anything is scored: as if each were looked up, then its target counted, in the order of the
// stream.
//
// Targets of one context, and no others, decide one another's hints. So they are dealt out by context to parts that know
// nothing of one another, and each part goes through its own in the order of the stream. Counts are exact: no table fills up.
// The same for any number of threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "score/distribution.h"
#include "score/ngram_rules.h"

namespace fairway {

class TiltHints {
 public:
  TiltHints() = default;  // nothing is tilted
  TiltHints(const NgramRecipe& recipe, std::span<const uint16_t> stream, ThreadPool& pool);

  Tilt of(int64_t target) const { return hints_.empty() ? Tilt{} : Tilt{hints_[static_cast<size_t>(target)], damping_}; }
  // Of targets [first, end); none where nothing is tilted.
  std::span<const Hint> of(int64_t first, int64_t end) const {
    return hints_.empty() ? std::span<const Hint>{}
                          : std::span(hints_).subspan(static_cast<size_t>(first), static_cast<size_t>(end - first));
  }

 private:
  double damping_ = 0;
  std::vector<Hint> hints_;  // by target
};

}  // namespace fairway
