// Adapters that learn inside a document, documents in the order of the stream (scoring spec §2.6, the strict variant): each
// chunk is scored from its document's own tokens, then the adapters take one step on it. Nothing goes from one document to the
// next but through phases: at set counts of documents all weights learn from every document scored so far.
// Negative control: as published, longest document first. Every score comes before its update in the order of the queue, but
// the queue, and so the weights and the warm A that score a document, depend on later text.
#include <algorithm>

#include "autograd/tape.h"
#include "backends/backends.h"
#include "base/rng.h"
#include "score/adapter_learner.h"
#include "score/documents.h"
#include "score/learner.h"
#include "score/merge_shares.h"
#include "score/windowed.h"

namespace fairway {
namespace {

// What a phase asks of the learner: one epoch, momentum 0.9, clipped at 1, attention inside documents.
ScoreRecipe phase_recipe(ScoreRecipe score) {
  score.ttt = {.chunk = score.lora.phase_chunk, .lr = score.lora.phase_lr, .momentum = 0.9, .epochs = 1, .clip = 1.0};
  score.documents = true;
  return score;
}

std::unique_ptr<Session> copy_of(const Tensor& from, const Tensor& to, Executor& executor) {
  Tape tape;
  tape.call(AccumulateScaled{.overwrite = true}, {tape.input("to", to), tape.input("from", from), Var{}});
  return executor.open(std::move(tape).finish());
}

class LoraEvaluator final : public Evaluator {
 public:
  LoraEvaluator(const ScoredModel& model, const ScoreSettings& settings, const ScoreContext& context)
      : model_(model),
        score_(settings.score),
        sorted_(settings.control == NegativeControl::lora_length_sorted),
        context_(in_float(context)),
        params_(std::make_shared<ParamStore>(parameter_table(model.recipe), ParamStore::Gradients::none)),
        learner_(model, params_, settings.score, context_) {
    if (score_.lora.phases == 0) return;
    trained_ = std::make_shared<ParamStore>(parameter_table(model.recipe), ParamStore::Gradients::kept);
    phases_ = std::make_unique<ChunkLearner>(model, trained_, phase_recipe(score_), context_);
    lend_ = copy_of(params_->flat_values(), trained_->flat_values(), *context_.executor);
    give_back_ = copy_of(trained_->flat_values(), params_->flat_values(), *context_.executor);
  }

  void run(ScoreLedger& ledger, const ScoreProgress& progress) override {
    load();
    learner_.begin_document();  // the control's A is warm from here on
    const std::vector<DocumentRange> queue = queue_of(ledger.stream());
    size_t done = 0;
    for (int64_t phase = 1; phase <= score_.lora.phases; ++phase) {
      const size_t before = std::min(queue.size(), static_cast<size_t>(documents_before(phase)));
      score_documents(ledger, std::span(queue).subspan(done, before - done), progress);
      done = before;
      if (done < queue.size()) learn_phase(ledger, std::span(queue).first(done));
    }
    score_documents(ledger, std::span(queue).subspan(done), progress);
  }

  // As if documents were as long as the context: a chunk's window is then half of it on average.
  double estimate(int64_t targets) override {
    load();
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
  // Weights with adapters are sums that bf16 programs have no type for: on a device this mode computes in float.
  ScoreContext in_float(ScoreContext context) {
    if (context.executor->backend() != Backend::cuda) return context;
    queue_ = std::make_unique<Queue>(1);
    executor_ = make_executor(Backend::cuda_f32, *queue_);
    context.executor = executor_.get();
    return context;
  }

  void load() {
    model_.load(*params_);
    context_.executor->upload(params_->flat_values());
  }

  // Documents that know nothing of one another: ranks score runs of neighbours of about the same length, then each has all
  // records. One document is one rank's, since each of its chunks needs the steps on those before.
  void score_documents(ScoreLedger& ledger, std::span<const DocumentRange> documents, const ScoreProgress& progress) {
    Communicator& comm = *context_.comm;
    if (documents.empty()) return;
    if (comm.size() == 1) return score_run(ledger, documents, progress);
    const size_t begin = first_document_of(documents, comm.rank()), end = first_document_of(documents, comm.rank() + 1);
    int32_t version = ledger.state_version();
    for (const DocumentRange& document : documents.first(begin)) version += updates_of(document);
    const auto target_of = [&](size_t n) { return n < documents.size() ? documents[n].first : documents.back().end; };
    ScoreLedger own = ledger.share(target_of(begin), target_of(end), version);
    const int64_t before = ledger.scored_count();
    score_run(own, documents.subspan(begin, end - begin), [&](int64_t done, int64_t total) {
      if (progress) progress(std::min(total, before + done * comm.size()), total);  // as if all were as quick
    });
    merge_shares(ledger, own, comm);
  }

  size_t first_document_of(std::span<const DocumentRange> documents, int64_t rank) const {
    const int64_t all = documents.back().end - documents.front().first, wanted = all * rank / context_.comm->size();
    size_t n = 0;
    while (n < documents.size() && documents[n].first - documents.front().first < wanted) ++n;
    return rank == context_.comm->size() ? documents.size() : n;
  }
  int32_t updates_of(const DocumentRange& document) const {
    return static_cast<int32_t>((document.count() - 1) / score_.lora.chunk);
  }

  void score_run(ScoreLedger& ledger, std::span<const DocumentRange> documents, const ScoreProgress& progress) {
    for (const DocumentRange& document : documents) {
      learner_.begin_document(sorted_ ? AdapterLearner::Start::warm : AdapterLearner::Start::cold);
      for (int64_t first = document.first; first < document.end; first += score_.lora.chunk) {
        score_chunk(ledger, document, first, std::min(document.end, first + score_.lora.chunk));
        if (progress) progress(ledger.scored_count(), ledger.targets());
      }
    }
  }

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
    lend_->run();
    phases_->reset();
    if (sorted_) {
      learn_documents(ledger, documents);
    } else {
      learn_stream(ledger, documents.back().end);
    }
    give_back_->run();
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

  std::unique_ptr<Queue> queue_;  // with the executor, where the context's computes in bf16
  std::unique_ptr<Executor> executor_;
  ScoredModel model_;
  ScoreRecipe score_;
  bool sorted_;
  ScoreContext context_;
  std::shared_ptr<ParamStore> params_;
  AdapterLearner learner_;
  std::shared_ptr<ParamStore> trained_;  // the weights with gradients, where there are phases
  std::unique_ptr<ChunkLearner> phases_;
  std::unique_ptr<Session> lend_, give_back_;  // weights to those that learn, and back
};

}  // namespace

std::unique_ptr<Evaluator> make_lora_evaluator(const ScoredModel& model, const ScoreSettings& settings,
                                               const ScoreContext& context) {
  return std::make_unique<LoraEvaluator>(model, settings, context);
}

}  // namespace fairway
