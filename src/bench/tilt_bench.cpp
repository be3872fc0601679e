#include "bench/tilt_bench.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "base/rng.h"
#include "score/ngram_experts.h"
#include "score/tilt_hints.h"

namespace fairway::bench {
namespace {

constexpr int64_t kChecked = int64_t{1} << 18;

void check_definition(const NgramRecipe& recipe, std::span<const uint16_t> stream, const TiltHints& hints) {
  const int bits = std::bit_width(stream.size()) + 1;  // tables that never fill
  TokenExpert expert(ngram_rules(recipe), bits, NgramTable::Probing::whole_table);
  ScoreLedger ledger(stream);
  for (int64_t target = 1; target <= ledger.targets(); ++target) {
    const Hint is = hints.of(target).hint, should = expert.hint();
    if (is.token != should.token || is.beta != should.beta)
      throw WorkError(
          fmt::format("target {}: hint {} of strength {}, but looked up in turn it is {} of strength {}; nothing "
                      "was timed",
                      target, is.token, is.beta, should.token, should.beta));
    const TargetScore score{};
    ledger.score(target, {&score, 1});
    expert.absorb(ledger.scored(target, target + 1));
  }
}

void check_threads(const NgramRecipe& recipe, std::span<const uint16_t> stream, const TiltHints& hints) {
  ThreadPool one(1);
  const TiltHints alone(recipe, stream, one);
  for (int64_t target = 1; target < static_cast<int64_t>(stream.size()); ++target) {
    const Hint a = hints.of(target).hint, b = alone.of(target).hint;
    if (a.token != b.token || a.beta != b.beta)
      throw WorkError(fmt::format("target {}: one thread makes another hint; nothing was timed", target));
  }
}

}  // namespace

std::vector<uint16_t> repeating_text(int64_t tokens, int64_t vocab) {
  Rng rng(11);
  std::vector<uint16_t> out;
  out.reserve(static_cast<size_t>(tokens));
  const double reach = std::log(static_cast<double>(vocab));
  while (static_cast<int64_t>(out.size()) < tokens) {
    if (out.size() > 1000 && rng.below(400) == 0) {  // a passage again
      const size_t from = rng.below(out.size() - 200);
      for (size_t i = 0, length = 20 + rng.below(120); i < length; ++i) out.push_back(out[from + i]);
      continue;
    }
    out.push_back(static_cast<uint16_t>(std::min(std::exp(reach * rng.uniform01()), static_cast<double>(vocab) - 1)));
  }
  out.resize(static_cast<size_t>(tokens));
  return out;
}

TiltBench bench_tilt(const NgramRecipe& recipe, std::span<const uint16_t> stream, double seconds, ThreadPool& pool) {
  const auto tokens = static_cast<int64_t>(stream.size());
  TiltBench result{.tokens = tokens, .checked = std::min(tokens, kChecked), .threads = pool.threads()};
  const TiltHints hints(recipe, stream, pool);
  check_definition(recipe, stream.first(static_cast<size_t>(result.checked)), hints);
  check_threads(recipe, stream, hints);
  for (int64_t target = 1; target < tokens; ++target) {
    const int32_t hint = hints.of(target).hint.token;
    result.hinted += hint >= 0 ? 1 : 0;
    result.right += hint == stream[static_cast<size_t>(target)] ? 1 : 0;
  }
  result.pass = measure([&] { const TiltHints again(recipe, stream, pool); }, seconds, 3);
  result.tokens_per_second = static_cast<double>(tokens) / result.pass.median;
  return result;
}

}  // namespace fairway::bench
