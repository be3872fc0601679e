// Negative control: documents served longest first, weights learning after each few of them (scoring spec §2.6). Every score
// comes before its update in the order of the queue, but the queue, and so the weights that score a document, depend on later
// text.
#include <algorithm>

#include "score/documents.h"
#include "score/learner.h"
#include "score/windowed.h"

namespace fairway {
namespace {

constexpr size_t kDocumentsPerStep = 4;

WindowShape whole_windows(const ScoreSettings& settings) {
  WindowShape shape = window_shape(settings);
  shape.scored = shape.context;
  return shape;
}

class DocumentTttEvaluator final : public WindowedEvaluator {
 public:
  DocumentTttEvaluator(const ScoredModel& scored_model, const ScoreSettings& score_settings, const ScoreContext& score_context)
      : WindowedEvaluator(scored_model, score_settings, score_context, whole_windows(score_settings),
                          ParamStore::Gradients::kept),
        learner_(scored_model, shared_params(), score_settings.score, score_context) {}

  void run(ScoreLedger& ledger, const ScoreProgress& progress) override {
    start();
    std::vector<DocumentRange> queue = document_ranges(ledger.stream(), model().recipe.model.bos);
    std::stable_sort(queue.begin(), queue.end(),
                     [](const DocumentRange& a, const DocumentRange& b) { return a.count() > b.count(); });
    for (size_t at = 0; at < queue.size(); at += kDocumentsPerStep) {
      const auto batch = std::span(queue).subspan(at, std::min(kDocumentsPerStep, queue.size() - at));
      std::vector<ScoredTokens> learned;
      for (const DocumentRange& document : batch) {
        score_document(ledger, document);
        learned.push_back(ledger.scored(document.first, document.end));
      }
      learner_.learn_documents(learned, settings().score.ttt.lr);
      for (const ScoredTokens& tokens : learned) ledger.updated(tokens, UpdateScope::stream);
      if (progress) progress(ledger.scored_count(), ledger.targets());
    }
  }

 private:
  void reset() override { learner_.reset(); }

  void score_document(ScoreLedger& ledger, const DocumentRange& document) {
    const int64_t length = settings().score.context;
    for (int64_t first = document.first; first < document.end; first += length) {
      const ScoreWindow window{first - 1, first, std::min(document.end, first + length)};
      runner().run(ledger.stream(), {&window, 1});
      score_window(ledger, 0, window, runner());
    }
  }

  ChunkLearner learner_;
};

}  // namespace

std::unique_ptr<Evaluator> make_document_ttt_evaluator(const ScoredModel& model, const ScoreSettings& settings,
                                                       const ScoreContext& context) {
  return std::make_unique<DocumentTttEvaluator>(model, settings, context);
}

}  // namespace fairway
