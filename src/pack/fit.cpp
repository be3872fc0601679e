#include "pack/fit.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "pack/tune_halves.h"
#include "quant/bit_allocator.h"
#include "quant/prune.h"

namespace fairway {
namespace {

constexpr double kCloseEnough = 0.9985;  // share of the budget at which the search ends
constexpr int kAttempts = 10;
constexpr uint64_t kRoomForTuning = 2000;  // part of the budget: halves that have moved may take a little more

class Fitter {
 public:
  explicit Fitter(const FitRequest& request) : request_(request), budget_(request.budget), runner_(request.site) {}
  Fitted run() { return request_.as_published ? published() : best(); }

 private:
  void say(const std::string& line) const {
    if (request_.say) request_.say(line);
  }
  void lap(const char* stage) const {
    if (request_.laps != nullptr) request_.laps->lap(stage);
  }
  TensorMoments moments() const { return request_.moments ? request_.moments() : TensorMoments{}; }
  bool fits(const Fitted& made) const { return made.bytes.size() <= budget_; }
  bool full(const Fitted& made) const {
    return fits(made) && static_cast<double>(made.bytes.size()) >= kCloseEnough * static_cast<double>(budget_);
  }
  PackOptions packing() const { return {.codec = request_.codec, .pool = &request_.site.pool()}; }
  Fitted written(QuantizedModel model, const char* method) const;
  Fitted own_setting(FactorCache& factors);
  Fitted published();
  Fitted pruned(const Fitted& natural) const;
  Fitted best();
  std::vector<Fitted> candidates();
  void tune(Fitted& best, KlDivergence& divergence) const;
  void allocate(BitAllocator& allocator, const std::function<void(Fitted)>& consider) const;

  const FitRequest& request_;
  uint64_t budget_;  // without what tuning may add
  OpRunner runner_;
};

Fitted Fitter::written(QuantizedModel model, const char* method) const {
  model.looped = request_.looped;
  model.tokenizer = request_.tokenizer;
  Fitted made{.method = method};
  made.weights = code_weights(model, packing());
  made.bytes = write_artifact(model, made.weights, packing(), &made.ledger);
  made.model = std::move(model);
  lap("coding");
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

Fitted Fitter::own_setting(FactorCache& factors) {
  QuantReport report;
  QuantizedModel own =
      quantize_model(request_.weights, request_.recipe, request_.hessians, runner_, factors, report, request_.comm);
  lap("recipe's own setting");
  Fitted natural = written(std::move(own), "recipe");
  natural.report = std::move(report);
  natural.natural_bytes = natural.bytes.size();
  return natural;
}

Fitted Fitter::published() {
  FactorCache factors(runner_, request_.hessians, request_.recipe.quant);
  Fitted natural = own_setting(factors);
  const uint64_t bytes = natural.bytes.size();
  if (!fits(natural) && request_.recipe.quant.prune == PruneScore::none)
    throw InputError(
        fmt::format("--budget {}: the recipe's own setting takes {} bytes; use a larger budget, or leave out --as-published",
                    request_.budget, bytes));
  Fitted made = fits(natural) ? std::move(natural) : pruned(natural);
  made.natural_bytes = bytes;
  const DamageModel damage(tensor_plans(request_.weights, request_.recipe), request_.recipe.quant, runner_, factors, moments());
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
  const auto budget = static_cast<double>(budget_) * 8;
  double below = 0, above = allocator.most_bits(), target = std::min(budget, above);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    QuantReport report;
    QuantizedModel model = allocator.at(target, report);
    lap("quantizing");
    Fitted made = written(std::move(model), "allocator");
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

// Of each way to make a model that fits, the one with the least expected damage. At equal bytes the recipe's own setting loses
// more than the allocator's (docs/packing.md), so that it is made where those leave bytes free: it may be finer than their
// finest step.
std::vector<Fitted> Fitter::candidates() {
  BitAllocator allocator(request_.weights, request_.recipe, request_.hessians, request_.site, request_.comm, moments());
  lap("steps measured");
  std::vector<Fitted> made;
  uint64_t smallest = UINT64_MAX;
  const auto best_of = [&](auto&& make) {
    std::optional<Fitted> best;
    make([&](Fitted one) {
      smallest = std::min(smallest, one.bytes.size());
      one.damage = allocator.damage().of(one.report);
      if (fits(one) && (!best || one.damage < best->damage)) best = std::move(one);
    });
    if (best) made.push_back(std::move(*best));
  };
  for (const bool trellis : {false, true}) {
    if (trellis && !request_.recipe.quant.trellis) continue;
    allocator.allow_trellis(trellis);
    best_of([&](auto&& consider) { allocate(allocator, consider); });
  }
  FactorCache factors(runner_, request_.hessians, request_.recipe.quant);
  if (std::none_of(made.begin(), made.end(), [&](const Fitted& one) { return full(one); }))
    best_of([&](auto&& consider) { consider(own_setting(factors)); });
  if (made.empty())
    throw InputError(fmt::format("--budget {}: the coarsest setting takes {} bytes; use a larger budget or a smaller model",
                                 request_.budget, smallest));
  return made;
}

// The expected damage of each tensor knows nothing of the others. What all errors do together is measured.
Fitted Fitter::best() {
  const std::unique_ptr<KlDivergence> divergence = request_.divergence ? request_.divergence() : nullptr;
  lap("predictions");
  if (divergence && divergence->has_gradient()) budget_ -= budget_ / kRoomForTuning;
  std::vector<Fitted> made = candidates();
  if (divergence)
    for (Fitted& one : made) one.divergence = divergence->of(one.model);
  lap("divergence");
  const auto loses_less = [&](const Fitted& a, const Fitted& b) {
    return divergence ? a.divergence < b.divergence : a.damage < b.damage;
  };
  Fitted best = std::move(*std::min_element(made.begin(), made.end(), loses_less));
  budget_ = request_.budget;
  if (divergence && divergence->has_gradient()) tune(best, *divergence);
  say(fmt::format("{}: {} of {} bytes",
                  best.method == "allocator" ? "bits spread by rate and distortion" : "the recipe's own setting loses least",
                  best.bytes.size(), request_.budget));
  return best;
}

// Kept where it helps on text that it did not see, and fits.
void Fitter::tune(Fitted& best, KlDivergence& divergence) const {
  QuantizedModel model = best.model;
  tune_halves(model, divergence);
  lap("halves tuned");
  Ledger ledger;
  std::string bytes = write_artifact(model, best.weights, packing(), &ledger);
  lap("coding");
  if (const double now = divergence.of(model); bytes.size() <= budget_ && now < best.divergence) {
    best.divergence = now;
    best.model = std::move(model);
    best.bytes = std::move(bytes);
    best.ledger = std::move(ledger);
  }
  lap("divergence");
}

}  // namespace

Fitted fit_model(const FitRequest& request) { return Fitter(request).run(); }

}  // namespace fairway
