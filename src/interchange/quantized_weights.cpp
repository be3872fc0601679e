#include "interchange/quantized_weights.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>

#include "base/error.h"

namespace fairway::interchange {
namespace {

using Kind = PickleValue::Kind;

enum class Correction : uint8_t { none, grouped, by_row };

struct StoredKind {
  std::string text;
  bool integers = false;
  std::string_view integers_end = ".q", steps_end = ".scale";
  Correction correction = Correction::none;
};

// The names after a low-rank correction's parts: factor A and its steps, factor B and its steps.
struct CorrectionEnds {
  std::string_view a, a_steps, b, b_steps;
};
constexpr CorrectionEnds kGrouped{".lqA_a", ".lqAs_a", ".lqB_a", ".lqBs_a"}, kByRow{".lqA", ".lqAs", ".lqB", ".lqBs"};

constexpr std::array<std::string_view, 3> kAsTheyAre{"passthrough", "passthrough_ctrl", "passthrough (float16)"};
constexpr std::array<std::string_view, 3> kIntegerTypes{"int5", "int6", "int8"};
constexpr std::array<std::string_view, 3> kRounded{"gptq (int6)", "gptq (int7)", "gptq (int8)"};
constexpr std::string_view kGroupedEnd = "+lqer_asym", kByRowEnd = "+lqer", kGateRows = "gate_int8_row";

template <size_t n>
bool among(std::string_view word, const std::array<std::string_view, n>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::optional<StoredKind> kind_named(std::string_view text) {
  StoredKind kind{.text = std::string(text)};
  if (among(text, kAsTheyAre)) return kind;
  kind.integers = true;
  if (text == kGateRows) {
    kind.integers_end = ".gq", kind.steps_end = ".gs";
    return kind;
  }
  for (const auto& [end, correction] : {std::pair{kGroupedEnd, Correction::grouped}, {kByRowEnd, Correction::by_row}}) {
    if (!text.ends_with(end)) continue;
    text.remove_suffix(end.size());
    kind.correction = correction;
    break;
  }
  if (!among(text, kRounded)) return std::nullopt;
  return kind;
}

// A text, or {'type': 'int6', …} of the first lineages.
StoredKind kind_of(const Pickle& pickle, PickleRef ref, const std::string& name) {
  const PickleValue& value = pickle[ref];
  std::string_view spelled = value.text;
  if (value.kind == Kind::text) {
    if (const std::optional<StoredKind> kind = kind_named(spelled)) return *kind;
  } else if (value.kind == Kind::dict && value.items.size() <= 8) {
    for (const auto& [key, type] : pickle.members(ref, "the kind of '" + name + "'")) {
      if (key != "type" || pickle[type].kind != Kind::text) continue;
      spelled = pickle[type].text;
      if (among(spelled, kIntegerTypes)) return {.text = std::string(spelled), .integers = true};
    }
  }
  pickle.refuse("the kind of '" + name + "' in 'm' is '" + printable(spelled) +
                "', which is none of a published artifact (passthrough, int5, int6, int8, gptq (int6) …, +lqer_asym, +lqer, "
                "gate_int8_row)");
}

class Reader {
 public:
  Reader(const StoredTensors& tensors, const Pickle& pickle) : tensors_(tensors), pickle_(pickle) {}

  Weight read(const std::string& name, const StoredKind& kind) {
    if (!kind.integers) {
      const StoredTensor& tensor = real(name, name);
      return {tensor.shape, std::string(name_of(tensor.type)), [tensor] { return floats_of(tensor); }};
    }
    const StoredTensor& integers = whole(name, kind.integers_end);
    const int64_t rows = integers.shape.empty() ? 1 : integers.shape[0];
    std::vector<float> steps = numbers(name, kind.steps_end, rows, true);
    if (kind.correction == Correction::none)
      return {integers.shape, kind.text,
              [integers, steps] { return scaled(integers, steps, steps.size() == 1 ? integers.count() : 0); }};
    return corrected(name, kind, integers, std::move(steps));
  }
  void require_all_used() const {
    for (const auto& [name, tensor] : tensors_)
      if (!used_.contains(name)) pickle_.refuse("tensor '" + name + "' belongs to no weight that 'm' names");
  }

 private:
  // A step for `group` elements in a row-major walk; 0: for a row.
  static std::vector<float> scaled(const StoredTensor& integers, const std::vector<float>& steps, int64_t group) {
    const std::vector<int8_t> q = bytes_of(integers);
    std::vector<float> out(q.size());
    if (q.empty()) return out;
    const int64_t run = std::max<int64_t>(1, group > 0 ? group : integers.count() / static_cast<int64_t>(steps.size()));
    for (size_t i = 0; i < q.size(); ++i) out[i] = static_cast<float>(q[i]) * steps[i / static_cast<size_t>(run)];
    return out;
  }

  const StoredTensor& part(const std::string& name, const std::string& whose) {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) pickle_.refuse("weight '" + whose + "' has no tensor '" + name + "'");
    used_.insert(name);
    return found->second;
  }
  const StoredTensor& real(const std::string& name, const std::string& whose) {
    const StoredTensor& tensor = part(name, whose);
    if (!is_real(tensor.type))
      pickle_.refuse(fmt::format("tensor '{}' is {}; expected floating point", name, name_of(tensor.type)));
    return tensor;
  }
  const StoredTensor& whole(const std::string& name, std::string_view end) {
    const StoredTensor& tensor = part(name + std::string(end), name);
    if (tensor.type != ElementType::i8)
      pickle_.refuse(fmt::format("tensor '{}{}' is {}; expected i8", name, end, name_of(tensor.type)));
    return tensor;
  }
  // Steps: `count` of them, or where `or_one` says so a single one.
  std::vector<float> numbers(const std::string& name, std::string_view end, int64_t count, bool or_one) {
    const StoredTensor& tensor = real(name + std::string(end), name);
    if (tensor.count() != count && !(or_one && tensor.shape.empty()))
      pickle_.refuse(fmt::format("tensor '{}{}' has {} steps; expected {}", name, end, tensor.count(), count));
    std::vector<float> values = floats_of(tensor);
    for (size_t i = 0; i < values.size(); ++i)
      if (!std::isfinite(values[i]))
        pickle_.refuse(fmt::format("tensor '{}{}': step {} is {}; expected a finite number", name, end, i, values[i]));
    return values;
  }

  // + (A·sA)(B·sB): A [rows, r], B [r, cols].
  Weight corrected(const std::string& name, const StoredKind& kind, const StoredTensor& integers, std::vector<float> steps) {
    const bool grouped = kind.correction == Correction::grouped;
    const CorrectionEnds& ends = grouped ? kGrouped : kByRow;
    const StoredTensor &a = whole(name, ends.a), &b = whole(name, ends.b);
    if (integers.shape.size() != 2 || a.shape.size() != 2 || b.shape.size() != 2 || a.shape[0] != integers.shape[0] ||
        b.shape[1] != integers.shape[1] || a.shape[1] != b.shape[0])
      pickle_.refuse(fmt::format("weight '{}' {} has a correction {} times {}, which does not fit", name,
                                 text_of(integers.shape), text_of(a.shape), text_of(b.shape)));
    const std::vector<float> a_steps = numbers(name, ends.a_steps, grouped ? 1 : a.shape[0], false);
    const int64_t groups = grouped ? real(name + std::string(ends.b_steps), name).count() : b.shape[0];
    if (groups == 0 || b.count() % groups != 0 || a.count() == 0)
      pickle_.refuse(fmt::format("tensor '{}{}' has {} steps, which do not divide the {} elements of '{}{}'", name,
                                 ends.b_steps, groups, b.count(), name, ends.b));
    const std::vector<float> b_steps = numbers(name, ends.b_steps, groups, false);
    return {integers.shape, kind.text, [=, steps = std::move(steps)] {
              std::vector<float> out = scaled(integers, steps, steps.size() == 1 ? integers.count() : 0);
              const std::vector<float> left = scaled(a, a_steps, grouped ? a.count() : 0),
                                       right = scaled(b, b_steps, b.count() / groups);
              const auto rank = static_cast<size_t>(a.shape[1]), cols = static_cast<size_t>(b.shape[1]);
              for (size_t i = 0; i < out.size(); ++i) {
                float sum = 0;
                for (size_t k = 0; k < rank; ++k) sum += left[i / cols * rank + k] * right[k * cols + i % cols];
                out[i] += sum;
              }
              return out;
            }};
  }

  const StoredTensors& tensors_;
  const Pickle& pickle_;
  std::set<std::string> used_;
};

}  // namespace

std::map<std::string, Weight> quantized_weights(const StoredTensors& tensors, const Pickle& pickle, PickleRef kinds) {
  std::map<std::string, Weight> out;
  Reader reader(tensors, pickle);
  for (const auto& [key, value] : pickle.members(kinds, "'m'")) {
    const std::string name = tensor_name(key, pickle.where());
    out.emplace(name, reader.read(name, kind_of(pickle, value, name)));
  }
  reader.require_all_used();
  return out;
}

}  // namespace fairway::interchange
