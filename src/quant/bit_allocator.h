// Spreads a byte budget over all tensors (scoring spec §4.9): minimise Σ damage + µ·Σ bits, where a tensor's knobs are the
// step that its rows share, told beside its typical magnitude (bits follow from it), and a trellis where the recipe allows it.
// Steps that follow each row's deviation, as SDClip's do, spend as much on rows that hardly count as on those that do. Damage
// is that of damage.h, rates are order-0 entropies. Both are measured at a few steps per tensor, once, and interpolated between
// them.
#pragma once

#include "quant/damage.h"

namespace fairway {

class BitAllocator {
 public:
  // Measures the options. The weights and Hessians must outlive the allocator. Tables and projections that the recipe keeps in
  // half precision become integers here, or a small budget could not be met. Ranks share the tensors, here and in at().
  BitAllocator(const ParamStore& weights, const Recipe& recipe, const HessianStore* hessians, OpSite site,
               Communicator& comm = single_process(), const TensorMoments& moments = {});

  double least_bits() const { return predicted_bits(kCoarsest); }  // about what the coarsest setting takes
  double most_bits() const { return predicted_bits(kFinest); }

  // Whether tensors may lie on a trellis, where the recipe allows it: yes until this says no.
  void allow_trellis(bool allowed) { trellis_ = allowed && recipe_.quant.trellis; }

  // The best model whose estimated_bits() are at most `target_bits`, close to them when they lie between least_bits() and
  // most_bits(); the coarsest model when they cannot be met. May be called again with other targets: what does not change is
  // kept.
  QuantizedModel at(double target_bits, QuantReport& report);

  const DamageModel& damage() const { return damage_; }  // what at() minimises

 private:
  static constexpr int kSteps = 64;            // per doubling of the step
  static constexpr int kFinest = -5 * kSteps;  // 1/32 of the typical magnitude: four deviations in eight bits
  static constexpr int kCoarsest = 5 * kSteps / 2;
  static constexpr int kNone = kCoarsest + 1;  // a step that no tensor has

  struct Option {
    int step;  // log2 of the step in typical magnitudes, times kSteps
    double bits, log_error;
  };
  struct Predicted {
    double bits, error;
  };
  struct Knob {  // where a tensor stands
    int step = 0;
    bool trellis = false;
    bool operator==(const Knob&) const = default;
  };
  struct Entry {
    TensorPlan plan;
    double typical = 0;                          // magnitude of a weight
    double largest = 0;                          // weight, in units of the step
    std::vector<Predicted> rounded, by_trellis;  // at every step from the finest; empty: fixed; not allowed
    Knob chosen{kNone};
    QuantizedPart part;  // at `chosen`
    double bits = 0;     // of it, estimated
    bool fixed() const { return rounded.empty(); }
  };
  // Rows of a tensor that is measured.
  struct Sample {
    Sample(size_t of, const TensorPlan& whole, FactorCache& factors);
    size_t entry;
    TensorPlan plan;  // whose weight has those rows alone
    std::vector<float> weight, dependence;
    double rows = 1, errors = 1;  // of the whole, beside the sample's
  };

  struct Choice {
    std::vector<Knob> knobs;  // of each entry; nothing where it is fixed
    double bits = 0;          // predicted
  };

  bool fixed(const Entry& entry) const { return !entry.plan.integers || entry.plan.role == QuantRole::gate; }
  void measure(std::span<const Sample> samples);    // every option of their entries
  void quantize(const std::vector<size_t>& which);  // at what is chosen
  GridSetting setting(const Entry& entry, Knob knob) const;
  static std::vector<Predicted> curve(std::span<const Option> measured);
  static const Predicted& predicted(const Entry& entry, Knob knob) {
    return (knob.trellis ? entry.by_trellis : entry.rounded)[static_cast<size_t>(knob.step - kFinest)];
  }
  template <class Visit>
  void each_knob(const Entry& entry, Visit&& visit) const;  // visit(knob, predicted)
  double predicted_bits(int step) const;                    // of all tensors, rounded, every one at this step
  Choice at_price(double price) const;                      // each tensor where it minimises damage + price·bits
  std::vector<Knob> choose(double target_bits) const;
  void spend(double free_bits, const std::vector<Knob>& finest, std::vector<Knob>& knobs) const;  // tensor by tensor
  double realize(const std::vector<Knob>& knobs);                                                 // returns the estimated bits

  Communicator* comm_;
  OpRunner runner_;
  Recipe recipe_;     // with the rules used here
  std::string hash_;  // of the recipe as it was given
  TensorMoments moments_;
  FactorCache factors_;
  DamageModel damage_;
  std::vector<Entry> entries_;
  bool trellis_ = false;
};

}  // namespace fairway
