// Adapters that learn inside a document, documents in the order of the stream (scoring spec §2.6, the strict variant): each
// chunk is scored from its document's own tokens, then the adapters take one step on it. Nothing goes from one document to the
// next.
#include <algorithm>

#include "base/rng.h"
#include "score/adapter_learner.h"
#include "score/documents.h"
#include "score/windowed.h"

namespace fairway {
namespace {

class LoraEvaluator final : public Evaluator {
 public:
  LoraEvaluator(const ScoredModel& model, const ScoreSettings& settings, const ScoreContext& context)
      : model_(model),
        score_(settings.score),
        context_(context),
        params_(std::make_shared<ParamStore>(parameter_table(model.recipe), ParamStore::Gradients::none)),
        learner_(model, params_, settings.score, context) {}

  void run(ScoreLedger& ledger, const ScoreProgress& progress) override {
    model_.load(*params_);
    for (const DocumentRange& document : document_ranges(ledger.stream(), model_.recipe.model.bos)) {
      learner_.begin_document();
      for (int64_t first = document.first; first < document.end; first += score_.lora.chunk) {
        score_chunk(ledger, document, first, std::min(document.end, first + score_.lora.chunk));
        if (progress) progress(ledger.scored_count(), ledger.targets());
      }
    }
  }

  // As if documents were as long as the context: a chunk's window is then half of it on average.
  double estimate(int64_t targets) override {
    model_.load(*params_);
    learner_.begin_document();
    Rng rng(1);
    std::vector<uint16_t> tokens(static_cast<size_t>(std::max(score_.context / 2, score_.lora.chunk)));
    for (uint16_t& token : tokens) token = static_cast<uint16_t>(rng.below(static_cast<uint64_t>(model_.recipe.model.vocab)));
    const auto chunk = std::span<const uint16_t>(tokens).last(static_cast<size_t>(score_.lora.chunk));
    const auto length = static_cast<int64_t>(tokens.size());
    learner_.run(tokens, chunk, length, true);  // the first run allocates
    const double seconds = seconds_of([&] { learner_.run(tokens, chunk, length, true); });
    return seconds * static_cast<double>(targets) / static_cast<double>(score_.lora.chunk);
  }

 private:
  void score_chunk(ScoreLedger& ledger, const DocumentRange& document, int64_t first, int64_t end) {
    const auto stream = ledger.stream();
    // Where the window begins is told by the chunk's place alone: a document that ends inside it changes nothing before.
    const int64_t whole = first - 1 + score_.lora.chunk;
    const int64_t begin = std::max(document.first - 1, whole - std::max(score_.context, score_.lora.chunk));
    const bool goes_on = end < document.end;
    const auto part = [&](int64_t from, int64_t to) {
      return stream.subspan(static_cast<size_t>(from), static_cast<size_t>(to - from));
    };
    learner_.run(part(begin, end - 1), part(first, end), whole - begin, goes_on);
    std::vector<TargetScore> scores(static_cast<size_t>(end - first));
    context_.pool->parallel_for(end - first, [&](int64_t row) {
      const int64_t target = first + row;
      scores[static_cast<size_t>(row)] =
          finish(learner_.distribution(row), learner_.nll(row), stream[static_cast<size_t>(target)], ledger.captured(target));
    });
    ledger.score(first, scores);
    if (!goes_on) return;
    const ScoredTokens chunk = ledger.scored(first, end);
    learner_.learn(chunk);
    ledger.updated(chunk, UpdateScope::stream);
  }

  ScoredModel model_;
  ScoreRecipe score_;
  ScoreContext context_;
  std::shared_ptr<ParamStore> params_;
  AdapterLearner learner_;
};

}  // namespace

std::unique_ptr<Evaluator> make_lora_evaluator(const ScoredModel& model, const ScoreSettings& settings,
                                               const ScoreContext& context) {
  return std::make_unique<LoraEvaluator>(model, settings, context);
}

}  // namespace fairway
