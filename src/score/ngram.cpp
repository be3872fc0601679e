// Scores tilted towards tokens that repeated text suggests (scoring spec §2.7, record spec §7.4). Each target is scored, then
// learned from, before the next one's hint is looked up.
#include <algorithm>
#include <cmath>

#include "score/ngram_experts.h"
#include "score/windowed.h"

namespace fairway {
namespace {

class NgramEvaluator final : public WindowedEvaluator {
 public:
  NgramEvaluator(const ScoredModel& scored_model, const ScoreSettings& score_settings, const ScoreContext& score_context)
      : WindowedEvaluator(scored_model, score_settings, score_context, window_shape(score_settings)) {
    const NgramRecipe& ngram = score_settings.score.ngram;
    if (score_settings.score.mode == ScoreMode::ngram_published) {
      published_ = std::make_unique<PublishedExperts>(ngram, model().bytes);
    } else if (ngram.order > 0) {
      expert_ = std::make_unique<TokenExpert>(ngram, TokenExpert::Orders::one, NgramHash::oldest_first);
    } else {
      expert_ = std::make_unique<TokenExpert>(ngram, TokenExpert::Orders::five, NgramHash::mixed);
    }
  }

 private:
  void reset() override {
    if (expert_) expert_->clear();
    if (published_) published_->clear();
  }

  // Every rank reads the text before its share by itself: one update, after which as many tokens are known as in one process.
  void begin_share(ScoreLedger& ledger, int64_t first, int64_t end) override {
    const auto known = static_cast<int32_t>(first - 1);
    ledger.take_share(first, end, std::max(0, known - 1));
    if (known == 0) return;
    const ScoredTokens prefix = ledger.scored(1, first);
    expert_->absorb(prefix);
    ledger.updated(prefix, UpdateScope::stream);
  }

  void score_window(ScoreLedger& ledger, int64_t i, const ScoreWindow& window, const WindowRunner& runner) override {
    for (int64_t target = window.first; target < window.end; ++target) {
      const int64_t row = runner.row(i, window, target - 1 - window.start);
      const uint16_t token = ledger.stream()[static_cast<size_t>(target)];
      Distribution distribution = runner.distribution(row);
      distribution.tilt = expert_ ? damped(expert_->hint(), distribution) : published_->hint_seeing_target(token);
      const TargetScore score = finish(distribution, runner.nll(row), token, ledger.captured(target));
      ledger.score(target, {&score, 1});
      const ScoredTokens scored = ledger.scored(target, target + 1);
      if (expert_) expert_->absorb(scored);
      if (published_) published_->absorb(scored);
      ledger.updated(scored, UpdateScope::stream);
    }
  }

  // Weaker where the model knows already: β·(1 − p(g))^γ, a function of the prefix alone.
  Tilt damped(Tilt tilt, const Distribution& distribution) const {
    const double power = settings().score.ngram.damping;
    if (tilt.token >= 0 && power > 0) tilt.beta *= std::pow(1 - distribution.probability(tilt.token), power);
    return tilt;
  }

  std::unique_ptr<TokenExpert> expert_;
  std::unique_ptr<PublishedExperts> published_;
};

}  // namespace

std::unique_ptr<Evaluator> make_ngram_evaluator(const ScoredModel& model, const ScoreSettings& settings,
                                                const ScoreContext& context) {
  return std::make_unique<NgramEvaluator>(model, settings, context);
}

}  // namespace fairway
