#include "artifact/fit.h"

#include <fmt/core.h>

#include <algorithm>

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
  // Writes the model; keeps it when it is the largest so far that fits. Returns its size.
  uint64_t offer(QuantizedModel model, const QuantReport& report, const char* method, int64_t pruned);
  bool settled() const { return found_ && close(best_.bytes.size()); }
  bool close(uint64_t bytes) const { return static_cast<double>(bytes) >= kCloseEnough * static_cast<double>(request_.budget); }
  bool prune_to_budget(const QuantizedModel& model, const QuantReport& report, PruneScore score);
  void allocate();

  const FitRequest& request_;
  Fitted best_;
  bool found_ = false;
  uint64_t smallest_ = UINT64_MAX;  // of all that were tried
};

uint64_t Fitter::offer(QuantizedModel model, const QuantReport& report, const char* method, int64_t pruned) {
  model.looped = request_.looped;
  model.tokenizer = request_.tokenizer;
  Ledger ledger;
  std::string bytes = write_artifact(model, {.codec = request_.codec}, &ledger);
  const uint64_t size = bytes.size();
  smallest_ = std::min(smallest_, size);
  if (size <= request_.budget && (!found_ || size > best_.bytes.size())) {
    best_ = {std::move(model), std::move(bytes), std::move(ledger), report, method, best_.natural_bytes, pruned};
    found_ = true;
  }
  return size;
}

// The fewest candidates whose absence fits, by bisection on the real size. The size is not perfectly monotone: what counts is
// what was written, so a step that fails only narrows the search.
bool Fitter::prune_to_budget(const QuantizedModel& model, const QuantReport& report, PruneScore score) {
  const std::vector<PruneCandidate> candidates =
      prune_candidates(model, request_.weights, request_.recipe, request_.hessians, score);
  const auto try_first = [&](size_t n) {
    QuantizedModel pruned = model;
    prune(pruned, std::span(candidates).first(n));
    return offer(std::move(pruned), report, "pruned", static_cast<int64_t>(n));
  };
  if (try_first(candidates.size()) > request_.budget) return false;
  size_t low = 0, high = candidates.size();
  while (high - low > candidates.size() / 2048 + 1 && !settled()) {
    const size_t middle = low + (high - low) / 2;
    (try_first(middle) <= request_.budget ? high : low) = middle;
  }
  return true;
}

// The allocator promises an estimate; the coder decides. Each attempt moves the target by what the last file missed or
// overshot.
void Fitter::allocate() {
  BitAllocator allocator(request_.weights, request_.recipe, request_.hessians, request_.queue, request_.comm,
                         request_.moments ? request_.moments() : TensorMoments{});
  const auto budget = static_cast<double>(request_.budget) * 8;
  double fits = 0, exceeds = allocator.most_bits(), target = std::min(budget, exceeds);
  for (int attempt = 0; attempt < kAttempts && !settled(); ++attempt) {
    QuantReport report;
    QuantizedModel model = allocator.at(target, report);
    const double written = static_cast<double>(offer(std::move(model), report, "allocator", 0)) * 8;
    (written <= budget ? fits : exceeds) = target;
    if (written <= budget && target >= allocator.most_bits()) break;  // nothing finer is left
    target += (1 - 0.25 * (1 - kCloseEnough)) * budget - written;
    if (!(target > fits && target < exceeds)) target = (fits + exceeds) / 2;
  }
}

Fitted Fitter::run() {
  QuantReport report;
  const QuantRecipe& quant = request_.recipe.quant;
  const QuantizedModel natural =
      quantize_model(request_.weights, request_.recipe, request_.hessians, request_.queue, report, request_.comm);
  best_.natural_bytes = offer(natural, report, "recipe", 0);
  const uint64_t bytes = best_.natural_bytes;
  if (found_ && !request_.fill) {
    say(fmt::format("the recipe's setting takes {} bytes; {} of {} are free (--fill spends them on finer steps)", bytes,
                    request_.budget - bytes, request_.budget));
    return std::move(best_);
  }
  say(fmt::format("the recipe's setting takes {} bytes for a budget of {}", bytes, request_.budget));
  if (!found_ && quant.prune != PruneScore::none && prune_to_budget(natural, report, quant.prune)) {
    say(fmt::format("{} levels of ±1 pruned: {} bytes", best_.pruned, best_.bytes.size()));
    return std::move(best_);
  }
  if (!quant.allocator && !found_) say("pruning is not enough; bits are allocated anew");
  allocate();
  if (!found_)
    throw InputError(
        fmt::format("--budget {}: the coarsest setting takes {} bytes; expected a larger budget or a smaller model",
                    request_.budget, smallest_));
  say(fmt::format("bits allocated by rate and distortion: {} bytes", best_.bytes.size()));
  return std::move(best_);
}

}  // namespace

Fitted fit_model(const FitRequest& request) { return Fitter(request).run(); }

}  // namespace fairway
