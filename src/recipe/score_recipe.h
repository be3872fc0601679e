// The [quant] and [score] tables: how trained weights become an artifact and how it is scored. Kept to what the
// published systems state without ambiguity.
#pragma once

#include "recipe/fields.h"

namespace fairway {

enum class QuantRule : uint8_t { rtn, gptq };
enum class Calibration : uint8_t { self, train, online };
enum class ScoreMode : uint8_t { plain, sliding };

template <>
struct EnumNames<QuantRule> {
  static constexpr std::array<std::string_view, 2> names{"rtn", "gptq"};
};
template <>
struct EnumNames<Calibration> {
  static constexpr std::array<std::string_view, 3> names{"self", "train", "online"};
};
template <>
struct EnumNames<ScoreMode> {
  static constexpr std::array<std::string_view, 2> names{"plain", "sliding"};
};

struct QuantRecipe {
  QuantRule rule = QuantRule::gptq;
  Calibration calibration = Calibration::self;
  int64_t matrix_bits = 6;
  int64_t token_bits = 8;

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.key("rule", self.rule, "round to nearest, or GPTQ");
    fields.key("calibration", self.calibration,
               "source of GPTQ's inputs: own samples, training data, or the training run itself");
    fields.key("matrix_bits", self.matrix_bits, Between{2, 8}, "bits of the attention and MLP banks");
    fields.key("token_bits", self.token_bits, Between{2, 8}, "bits of the token embedding");
  }
  bool operator==(const QuantRecipe&) const = default;
};

struct ScoreRecipe {
  ScoreMode mode = ScoreMode::sliding;
  int64_t stride = 64;
  int64_t context = 2048;

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.key("mode", self.mode, "disjoint windows, or windows that overlap so that every token has context");
    fields.key("stride", self.stride, Between{1, 1 << 20}, "sliding: tokens scored per window");
    fields.key("context", self.context, Between{1, 1 << 20}, "tokens of one scoring window");
  }
  bool operator==(const ScoreRecipe&) const = default;
};

}  // namespace fairway
