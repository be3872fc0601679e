// Adapters that learn inside a document, documents in the order of the stream (scoring spec §2.6, the strict variant): each
// chunk is scored from its document's own tokens, then the adapters take one step on it. Nothing goes from one document to the
// next but through phases: at set counts of documents all weights learn from every document scored so far.
// Negative control: as published, longest document first. Every score comes before its update in the order of the queue, but
// the queue, and so the weights and the warm A that score a document, depend on later text.
#include <algorithm>
#include <cstring>

#include "base/rng.h"
#include "score/adapter_learner.h"
#include "score/documents.h"
#include "score/learner.h"
#include "score/windowed.h"

namespace fairway {
namespace {

// What a phase asks of the learner: one epoch, momentum 0.9, clipped at 1, attention inside documents.
ScoreRecipe phase_recipe(ScoreRecipe score) {
  score.ttt = {.chunk = score.lora.phase_chunk, .lr = score.lora.phase_lr, .momentum = 0.9, .epochs = 1, .clip = 1.0};
  score.documents = true;
  return score;
}

class LoraEvaluator final : public Evaluator {
 public:
  LoraEvaluator(const ScoredModel& model, const ScoreSettings& settings, const ScoreContext& context)
      : model_(model),
        score_(settings.score),
        sorted_(settings.control == NegativeControl::lora_length_sorted),
        context_(context),
        params_(std::make_shared<ParamStore>(parameter_table(model.recipe), ParamStore::Gradients::none)),
        learner_(model, params_, settings.score, context) {
    if (score_.lora.phases == 0) return;
    trained_ = std::make_shared<ParamStore>(parameter_table(model.recipe), ParamStore::Gradients::kept);
    phases_ = std::make_unique<ChunkLearner>(model, trained_, phase_recipe(score_), context);
  }

  void run(ScoreLedger& ledger, const ScoreProgress& progress) override {
    model_.load(*params_);
    learner_.begin_document();
    const std::vector<DocumentRange> queue = queue_of(ledger.stream());
    int64_t phase = 1;
    for (size_t n = 0; n < queue.size(); ++n) {
      for (; phase <= score_.lora.phases && static_cast<int64_t>(n) >= documents_before(phase); ++phase)
        learn_phase(ledger, std::span(queue).first(n));
      learner_.begin_document(sorted_ ? AdapterLearner::Start::warm : AdapterLearner::Start::cold);
      for (int64_t first = queue[n].first; first < queue[n].end; first += score_.lora.chunk) {
        score_chunk(ledger, queue[n], first, std::min(queue[n].end, first + score_.lora.chunk));
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
    // A phase sees at most the whole stream.
    const double sequences = static_cast<double>(score_.lora.phases * targets) / static_cast<double>(score_.context);
    return seconds * static_cast<double>(targets) / static_cast<double>(score_.lora.chunk) +
           (phases_ ? sequences * phases_->seconds_per_sequence() : 0);
  }

 private:
  std::vector<DocumentRange> queue_of(std::span<const uint16_t> stream) const {
    std::vector<DocumentRange> queue = document_ranges(stream, model_.recipe.model.bos);
    if (sorted_)
      std::stable_sort(queue.begin(), queue.end(),
                       [](const DocumentRange& a, const DocumentRange& b) { return a.count() > b.count(); });
    return queue;
  }
  int64_t documents_before(int64_t phase) const { return score_.lora.phase_documents * phase / score_.lora.phases; }

  // All weights on every document scored so far, with a new optimizer.
  void learn_phase(ScoreLedger& ledger, std::span<const DocumentRange> documents) {
    if (documents.empty()) return;
    std::memcpy(trained_->flat_values().data, params_->flat_values().data, params_->flat_values().spec.bytes());
    phases_->reset();
    if (sorted_) {
      learn_documents(ledger, documents);
    } else {
      learn_stream(ledger, documents.back().end);
    }
    std::memcpy(params_->flat_values().data, trained_->flat_values().data, params_->flat_values().spec.bytes());
  }

  // Chunks of the stream before target `end`; the last one is left out.
  void learn_stream(ScoreLedger& ledger, int64_t end) {
    const int64_t size = score_.lora.phase_chunk, chunks = (end - 1 + size - 1) / size;
    for (int64_t chunk = 0; chunk + 1 < chunks; ++chunk) {
      const ScoredTokens tokens = ledger.scored(chunk * size + 1, (chunk + 1) * size + 1);
      phases_->learn(tokens, cosine_rate(score_.lora.phase_lr, chunk, chunks));
      ledger.updated(tokens, UpdateScope::stream);
    }
  }

  // Documents that lie anywhere in the stream, a few for each step.
  void learn_documents(ScoreLedger& ledger, std::span<const DocumentRange> documents) {
    constexpr size_t kDocumentsPerStep = 4;
    for (size_t at = 0; at < documents.size(); at += kDocumentsPerStep) {
      std::vector<ScoredTokens> learned;
      for (const DocumentRange& document : documents.subspan(at, std::min(kDocumentsPerStep, documents.size() - at)))
        learned.push_back(ledger.scored(document.first, document.end));
      phases_->learn_documents(learned, score_.lora.phase_lr);
      for (const ScoredTokens& tokens : learned) ledger.updated(tokens, UpdateScope::stream);
    }
  }

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
  bool sorted_;
  ScoreContext context_;
  std::shared_ptr<ParamStore> params_;
  AdapterLearner learner_;
  std::shared_ptr<ParamStore> trained_;  // the weights with gradients, where there are phases
  std::unique_ptr<ChunkLearner> phases_;
};

}  // namespace

std::unique_ptr<Evaluator> make_lora_evaluator(const ScoredModel& model, const ScoreSettings& settings,
                                               const ScoreContext& context) {
  return std::make_unique<LoraEvaluator>(model, settings, context);
}

}  // namespace fairway
