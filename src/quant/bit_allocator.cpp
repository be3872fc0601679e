#include "quant/bit_allocator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "quant/shared_tensors.h"

namespace fairway {
namespace {

constexpr int64_t kFewestElements = 1024;  // smaller tables stay in half precision
constexpr double kLeastError = 1e-30;
constexpr double kClose = 0.9985;  // share of the target that is good enough
constexpr int kAttempts = 8;
// One row in so many is measured, and at least so many weights: with fewer the demo lost 1 to 3 % more.
constexpr int64_t kSampled = 4, kLeastSampled = 1 << 17;
// Where options are measured, in doublings of the step: far apart where rounding noise follows its law, closer where it does
// not.
constexpr std::array<double, 12> kMeasured{-5, -4, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2.5};

double mean_log2(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += std::log2(static_cast<double>(value));
  return sum / static_cast<double>(values.size());
}

Recipe with_own_rules(Recipe recipe) {
  recipe.quant.scale = ScaleRule::sdclip;
  if (recipe.quant.rule == QuantRule::gptq_lite) recipe.quant.rule = QuantRule::rtn;
  recipe.quant.half_elements = std::min(recipe.quant.half_elements, kFewestElements);
  return recipe;
}

}  // namespace

BitAllocator::BitAllocator(const ParamStore& weights, const Recipe& recipe, const HessianStore* hessians, OpSite site,
                           Communicator& comm, const TensorMoments& moments)
    : comm_(&comm),
      runner_(site),
      recipe_(with_own_rules(recipe)),
      hash_(recipe_hash(recipe)),
      moments_(moments),
      factors_(runner_, hessians, recipe_.quant, FactorCache::Steps::by_column, &moments_) {
  std::vector<TensorPlan> plans = tensor_plans(weights, recipe_);
  damage_ = DamageModel(plans, recipe_.quant, runner_, factors_, moments_);
  std::vector<size_t> kept;
  std::vector<Sample> samples;
  for (TensorPlan& plan : plans) {
    if (const auto moment = moments_.find(plan.name()); moment != moments_.end()) plan.dependence = moment->second.rows;
    if (const OutputFactor* outputs = factors_.outputs(plan)) plan.dependence = outputs->counts;
    Entry& entry = entries_.emplace_back(Entry{.plan = plan});
    if (fixed(entry)) {
      kept.push_back(entries_.size() - 1);
      continue;
    }
    entry.typical = typical_magnitude(plan.weight, runner_.pool());
    const GptqFactor* factor = factors_.factor(plan);
    const DividedWeight divided(plan.weight, row_classes(plan.dependence), factor ? factor->columns : std::vector<int8_t>{},
                                runner_.pool());
    entry.largest = largest_magnitude(divided.view().all());
    samples.emplace_back(entries_.size() - 1, plan, factors_);
  }
  allow_trellis(true);
  quantize(kept);
  measure(samples);
}

// Rows are rounded without the others, or with those of their band, so that some of them say what all would take and lose.
BitAllocator::Sample::Sample(size_t of, const TensorPlan& whole, FactorCache& factors) : entry(of), plan(whole) {
  const MatrixView w = whole.weight;
  const int64_t each = std::clamp<int64_t>(w.count() / kLeastSampled, 1, std::min(kSampled, w.rows));
  if (each == 1) return;
  double all = 0, here = 0;
  for (int64_t row = 0; row < w.rows; ++row) {
    const double counts = whole.dependence.empty() ? 1.0 : static_cast<double>(whole.dependence[static_cast<size_t>(row)]);
    all += counts;
    if (row % each != 0) continue;
    here += counts;
    weight.insert(weight.end(), w.row(row).begin(), w.row(row).end());
    if (!whole.dependence.empty()) dependence.push_back(static_cast<float>(counts));
  }
  plan.weight = {weight.data(), static_cast<int64_t>(weight.size()) / w.cols, w.cols};
  plan.dependence = dependence;
  plan.every = each;
  rows = static_cast<double>(w.rows) / static_cast<double>(plan.weight.rows);
  errors = all / here;
  // Rows that make up for each other count less the more of them there are. Steps follow, so that each loses as the mean does.
  if (const OutputFactor* outputs = factors.outputs(plan)) {
    plan.dependence = outputs->counts;
    errors = rows * std::exp2(mean_log2(whole.dependence) - mean_log2(outputs->counts));
  }
}

// All options of a tensor together: a device has its factor then, and rounds them at once.
void BitAllocator::measure(std::span<const Sample> samples) {
  std::vector<Knob> knobs;
  for (const double doublings : kMeasured)
    for (const bool trellis : {false, true})
      if (!trellis || recipe_.quant.trellis) knobs.push_back({static_cast<int>(doublings * kSteps), trellis});
  std::vector<TensorJob> jobs;
  for (const Sample& sample : samples) {
    TensorJob& job = jobs.emplace_back(TensorJob{&sample.plan, {}});
    for (const Knob knob : knobs) job.settings.push_back(setting(entries_[sample.entry], knob));
  }
  const std::vector<QuantizedPart> parts = quantize_tensors(jobs, recipe_.quant, runner_, factors_, *comm_);
  for (size_t n = 0; n < samples.size(); ++n) {
    Entry& entry = entries_[samples[n].entry];
    std::vector<Option> rounded, by_trellis;
    for (size_t k = 0; k < knobs.size(); ++k) {
      const QuantizedPart& part = parts[n * knobs.size() + k];
      const double error = samples[n].errors * damage_.relative_error(samples[n].entry, part.report);
      (knobs[k].trellis ? by_trellis : rounded)
          .push_back({knobs[k].step, samples[n].rows * estimated_bits(part), std::log(std::max(error, kLeastError))});
    }
    entry.rounded = curve(rounded);
    entry.by_trellis = curve(by_trellis);
  }
}

// Bits and the logarithm of the error are linear between measured steps.
std::vector<BitAllocator::Predicted> BitAllocator::curve(std::span<const Option> measured) {
  std::vector<Predicted> out;
  size_t right = 1;
  for (int step = kFinest; step <= kCoarsest && !measured.empty(); ++step) {
    while (right + 1 < measured.size() && measured[right].step < step) ++right;
    const Option &a = measured[right - 1], &b = measured[right];
    const double share = static_cast<double>(step - a.step) / static_cast<double>(b.step - a.step);
    out.push_back({a.bits + share * (b.bits - a.bits), std::exp(a.log_error + share * (b.log_error - a.log_error))});
  }
  return out;
}

void BitAllocator::quantize(const std::vector<size_t>& which) {
  std::vector<TensorJob> jobs;
  for (size_t i : which) {
    const Entry& entry = entries_[i];
    jobs.push_back({&entry.plan, {fixed(entry) ? grid_setting(entry.plan, recipe_.quant) : setting(entry, entry.chosen)}});
  }
  std::vector<QuantizedPart> parts = quantize_tensors(jobs, recipe_.quant, runner_, factors_, *comm_);
  for (size_t n = 0; n < which.size(); ++n) {
    entries_[which[n]].bits = estimated_bits(parts[n]);
    entries_[which[n]].part = std::move(parts[n]);
  }
}

GridSetting BitAllocator::setting(const Entry& entry, Knob knob) const {
  return shared_step_setting(entry.largest, std::exp2(static_cast<double>(knob.step) / kSteps) * entry.typical, knob.trellis);
}

template <class Visit>
void BitAllocator::each_knob(const Entry& entry, Visit&& visit) const {
  for (const bool trellis : {false, true})
    for (int step = kFinest; (!trellis || trellis_) && step <= kCoarsest; ++step)
      visit(Knob{step, trellis}, predicted(entry, {step, trellis}));
}

double BitAllocator::predicted_bits(int step) const {
  double total = 0;
  for (const Entry& entry : entries_) {
    total += entry.fixed() ? entry.bits : predicted(entry, {step, false}).bits;
  }
  return total;
}

BitAllocator::Choice BitAllocator::at_price(double price) const {
  Choice out;
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    Knob chosen;
    double best = std::numeric_limits<double>::infinity(), bits = 0;
    if (entry.fixed())
      bits = entry.bits;
    else
      each_knob(entry, [&](Knob knob, const Predicted& option) {
        const double cost = damage_.of_tensor(i, option.error) + price * option.bits;
        if (!(cost < best)) return;
        best = cost;
        bits = option.bits;
        chosen = knob;
      });
    out.bits += bits;
    out.knobs.push_back(chosen);
  }
  return out;
}

// Bisects the price. Where a tensor's curve is not convex its step jumps at one price, and so do all bits; what the jump leaves
// free is spent on steps between.
std::vector<BitAllocator::Knob> BitAllocator::choose(double target_bits) const {
  double low = -60, high = 30;  // log2 of the price
  Choice fits = at_price(std::exp2(high)), exceeds = at_price(std::exp2(low));
  for (int round = 0; round < 40; ++round) {
    const double middle = (low + high) / 2;
    Choice tried = at_price(std::exp2(middle));
    const bool small = tried.bits <= target_bits;
    (small ? high : low) = middle;
    (small ? fits : exceeds) = std::move(tried);
  }
  spend(target_bits - fits.bits, exceeds.knobs, fits.knobs);
  return fits.knobs;
}

void BitAllocator::spend(double free_bits, const std::vector<Knob>& finest, std::vector<Knob>& knobs) const {
  for (size_t i = 0; i < knobs.size(); ++i) {
    if (entries_[i].fixed() || finest[i] == knobs[i]) continue;
    const double least = predicted(entries_[i], finest[i]).error, now = predicted(entries_[i], knobs[i]).bits;
    Predicted best = predicted(entries_[i], knobs[i]);
    each_knob(entries_[i], [&](Knob knob, const Predicted& option) {
      if (option.error < least || option.error >= best.error || option.bits - now > free_bits) return;
      best = option;
      knobs[i] = knob;
    });
    free_bits -= best.bits - now;
  }
}

double BitAllocator::realize(const std::vector<Knob>& knobs) {
  std::vector<size_t> changed;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].fixed() || entries_[i].chosen == knobs[i]) continue;
    entries_[i].chosen = knobs[i];
    changed.push_back(i);
  }
  quantize(changed);
  double total = 0;
  for (const Entry& entry : entries_) total += entry.bits;
  return total;
}

QuantizedModel BitAllocator::at(double target_bits, QuantReport& report) {
  std::vector<Knob> best, last;
  double best_total = -1, goal = target_bits;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::vector<Knob> knobs = choose(goal);
    if (knobs == last) {
      if (!best.empty()) break;
      goal -= (1 - kClose) * target_bits;  // what a jump leaves free is not spent again
      continue;
    }
    const double total = realize(knobs);
    if (total <= target_bits && total > best_total) {
      best_total = total;
      best = knobs;
    }
    if (total <= target_bits && total >= kClose * target_bits) break;
    // Aim a little below the target, so that what was just above ends just below.
    goal += (1 - 0.25 * (1 - kClose)) * target_bits - total;
    last = std::move(knobs);
  }
  if (best.empty()) {
    best.assign(entries_.size(), {kCoarsest, trellis_});
  }
  realize(best);
  QuantizedModel model{
      .model = recipe_.model, .recipe_hash = hash_, .train_length = recipe_.data.seq_len, .segment = segment_of(recipe_)};
  report.tensors.clear();
  for (const Entry& entry : entries_) {
    model.tensors.push_back(entry.part.tensor);
    report.tensors.push_back(entry.part.report);
  }
  return model;
}

}  // namespace fairway
