// SLOT beside weights or adapters that learn (scoring spec §2.8): absent at zero, better where text repeats.
#include <gtest/gtest.h>

#include "base/error.h"
#include "score/metric.h"
#include "score/tiny_score.h"

namespace fairway::score_test {
namespace {

TEST(SlotBesideTtt, AnOffsetAtZeroIsNoneAndAFittedOneHelps) {
  Recipe recipe = tiny_recipe();
  const ScoredModel model = tiny_model(recipe);
  const std::vector<uint16_t> stream = tiny_stream(900);
  const TargetBytes bytes(model.bytes);
  const ScoringMode with{ScoreMode::ttt, false, true};
  const double ttt = measure(score(model, settings_of(recipe, ScoreMode::ttt), stream), bytes).loss();
  EXPECT_LT(measure(score(model, settings_of(recipe, with), stream), bytes).loss(), ttt - 0.005);
  recipe.score.slot.lr = 0;
  EXPECT_NEAR(measure(score(model, settings_of(recipe, with), stream), bytes).loss(), ttt, 1e-6);
  recipe.score.slot.carried = true;
  EXPECT_THROW(score(model, settings_of(recipe, with), stream), InputError);
}

// The first chunk of a document is scored by the model as it is, later ones under what those before have left.
TEST(SlotBesideAdapters, IsCarriedAlongADocument) {
  Recipe recipe = tiny_recipe();
  const ScoredModel model = tiny_model(recipe);
  constexpr size_t kSecond = 200;  // where the second document begins
  std::vector<uint16_t> stream = tiny_stream(400);
  for (size_t i = 1; i < stream.size(); ++i) stream[i] = i == kSecond ? 1 : stream[i] == 1 ? 9 : stream[i];
  const TargetBytes bytes(model.bytes);
  const ScoringMode with{ScoreMode::lora_ttt, false, true};
  const ScoreLedger lora = score(model, settings_of(recipe, ScoreMode::lora_ttt), stream);
  const ScoreLedger both = score(model, settings_of(recipe, with), stream);
  const int64_t chunk = recipe.score.lora.chunk;
  for (const int64_t first : {int64_t{1}, static_cast<int64_t>(kSecond) + 1}) {
    for (int64_t target = first; target < first + chunk; ++target)
      EXPECT_NEAR(both.nll(target), lora.nll(target), 1e-5) << target;
    EXPECT_NE(both.nll(first + chunk), lora.nll(first + chunk));
  }
  EXPECT_LT(measure(both, bytes).loss(), measure(lora, bytes).loss() - 0.005);
  recipe.score.slot.lr = 0;
  EXPECT_NEAR(measure(score(model, settings_of(recipe, with), stream), bytes).loss(), measure(lora, bytes).loss(), 1e-6);
}

}  // namespace
}  // namespace fairway::score_test
