#include "pack/fit.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "quant/bit_allocator.h"
#include "quant/prune.h"

namespace fairway {
namespace {

constexpr double kCloseEnough = 0.9985;  // share of the budget at which the search ends
constexpr int kAttempts = 10;

class Fitter {
 public:
  explicit Fitter(const FitRequest& request) : request_(request) {}
  Fitted run();

 private:
  void say(const std::string& line) const {
    if (request_.say) request_.say(line);
  }
  TensorMoments moments() const { return request_.moments ? request_.moments() : TensorMoments{}; }
  bool fits(const Fitted& made) const { return made.bytes.size() <= request_.budget; }
  bool full(const Fitted& made) const {
    return fits(made) && static_cast<double>(made.bytes.size()) >= kCloseEnough * static_cast<double>(request_.budget);
  }
  Fitted written(QuantizedModel model, const char* method) const;
  Fitted published(Fitted natural) const;
  Fitted pruned(const Fitted& natural) const;
  Fitted best(Fitted natural) const;
  void allocate(BitAllocator& allocator, const std::function<void(Fitted)>& consider) const;

  const FitRequest& request_;
};

Fitted Fitter::written(QuantizedModel model, const char* method) const {
  model.looped = request_.looped;
  model.tokenizer = request_.tokenizer;
  Fitted made{.method = method};
  made.bytes = write_artifact(model, {.codec = request_.codec, .pool = &request_.site.pool()}, &made.ledger);
  made.model = std::move(model);
  return made;
}

// The fewest candidates whose absence fits, by bisection on the real size. The size is not perfectly monotone: what counts is
// what was written, so a step that fails only narrows the search.
Fitted Fitter::pruned(const Fitted& natural) const {
  const std::vector<PruneCandidate> candidates =
      prune_candidates(natural.model, request_.weights, request_.recipe, request_.hessians, request_.recipe.quant.prune);
  const auto without_first = [&](size_t n) {
    QuantizedModel model = natural.model;
    prune(model, std::span(candidates).first(n));
    Fitted made = written(std::move(model), "pruned");
    made.pruned = static_cast<int64_t>(n);
    return made;
  };
  Fitted kept = without_first(candidates.size());
  if (!fits(kept))
    throw InputError(
        fmt::format("--budget {}: the recipe's own setting takes {} bytes, {} after all the pruning it allows; "
                    "use a larger budget, or leave out --as-published",
                    request_.budget, natural.bytes.size(), kept.bytes.size()));
  size_t low = 0, high = candidates.size();
  while (high - low > candidates.size() / 2048 + 1 && !full(kept)) {
    const size_t middle = low + (high - low) / 2;
    Fitted tried = without_first(middle);
    (fits(tried) ? high : low) = middle;
    if (fits(tried)) kept = std::move(tried);
  }
  kept.report = natural.report;
  measure_pruned(kept.model, request_.weights, request_.recipe, request_.hessians, request_.site, kept.report);
  return kept;
}

Fitted Fitter::published(Fitted natural) const {
  const uint64_t bytes = natural.bytes.size();
  if (!fits(natural) && request_.recipe.quant.prune == PruneScore::none)
    throw InputError(
        fmt::format("--budget {}: the recipe's own setting takes {} bytes; use a larger budget, or leave out --as-published",
                    request_.budget, bytes));
  Fitted made = fits(natural) ? std::move(natural) : pruned(natural);
  OpRunner runner(request_.site);
  const FactorCache factors(runner, request_.hessians, request_.recipe.quant);
  const DamageModel damage(tensor_plans(request_.weights, request_.recipe), request_.recipe.quant, runner, factors, moments());
  made.damage = damage.of(made.report);
  if (made.pruned > 0)
    say(fmt::format("the recipe's own setting takes {} bytes, {} with {} levels of ±1 pruned", bytes, made.bytes.size(),
                    made.pruned));
  else
    say(fmt::format("the recipe's own setting takes {} bytes; {} of {} are free", bytes, request_.budget - bytes,
                    request_.budget));
  return made;
}

// The allocator promises an estimate; the coder decides. Each attempt moves the target by what the last file missed or
// overshot.
void Fitter::allocate(BitAllocator& allocator, const std::function<void(Fitted)>& consider) const {
  const auto budget = static_cast<double>(request_.budget) * 8;
  double below = 0, above = allocator.most_bits(), target = std::min(budget, above);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    QuantReport report;
    Fitted made = written(allocator.at(target, report), "allocator");
    made.report = std::move(report);
    const bool fitted = fits(made), done = full(made) || (fitted && target >= allocator.most_bits());  // nothing finer is left
    const double bits = static_cast<double>(made.bytes.size()) * 8;
    consider(std::move(made));
    if (done) return;
    (fitted ? below : above) = target;
    target += (1 - 0.25 * (1 - kCloseEnough)) * budget - bits;
    if (!(target > below && target < above)) target = (below + above) / 2;
  }
}

Fitted Fitter::best(Fitted natural) const {
  BitAllocator allocator(request_.weights, request_.recipe, request_.hessians, request_.site, request_.comm, moments());
  const uint64_t bytes = natural.bytes.size();
  std::optional<Fitted> best;
  uint64_t smallest = UINT64_MAX;
  const auto consider = [&](Fitted made) {
    smallest = std::min(smallest, made.bytes.size());
    made.damage = allocator.damage().of(made.report);
    if (fits(made) && (!best || made.damage < best->damage)) best = std::move(made);
  };
  consider(std::move(natural));
  allocate(allocator, consider);
  if (!best)
    throw InputError(fmt::format("--budget {}: the coarsest setting takes {} bytes; use a larger budget or a smaller model",
                                 request_.budget, smallest));
  const bool allocated = best->method == "allocator";
  say(fmt::format("{}: {} of {} bytes (the recipe's own setting takes {})",
                  allocated ? "bits spread by rate and distortion" : "the recipe's own setting loses least", best->bytes.size(),
                  request_.budget, bytes));
  return std::move(*best);
}

Fitted Fitter::run() {
  QuantReport report;
  Fitted natural = written(
      quantize_model(request_.weights, request_.recipe, request_.hessians, request_.site, report, request_.comm), "recipe");
  natural.report = std::move(report);
  const uint64_t bytes = natural.bytes.size();
  Fitted made = request_.as_published ? published(std::move(natural)) : best(std::move(natural));
  made.natural_bytes = bytes;
  return made;
}

}  // namespace

Fitted fit_model(const FitRequest& request) { return Fitter(request).run(); }

}  // namespace fairway
