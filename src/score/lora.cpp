// Adapters that learn inside a document, documents in the order of the stream (scoring spec §2.6, the strict variant): each
// chunk is scored from its document's own tokens, then the adapters take one step on it. Nothing goes from one document to the
// next but through phases: at set counts of documents all weights learn from every document scored so far. Between phases
// documents may therefore be scored in any order and many at once; each has a share of the ledger, which sees to it that it
// learns from nothing but what it has scored, and shares are joined in the order of the stream.
// compat: as published, the longest documents first, in batches that inherit A from the batch before. Every score comes before
// its update in the order of the queue, but the queue, and so the weights and the A that score a document, depend on later
// text.
#include <algorithm>

#include "autograd/tape.h"
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

// In the published order a batch decides which A a document inherits, so its size does not depend on the machine. Elsewhere
// ranks that share a card share the batch that fills it, and so its memory.
int64_t documents_at_once(const ScoreRecipe& score, const ScoreContext& context) {
  constexpr int64_t kPublished = 64, kTokensOnCpu = 4096;
  if (score.lora.batch > 0) return score.lora.batch;
  if (score.lora.order == LoraOrder::compat) return kPublished;
  if (!context.executor->on_device()) return std::clamp<int64_t>(kTokensOnCpu / score.context, 1, kPublished);
  const int devices = context.executor->devices(), sharing = (context.comm->local_size() + devices - 1) / devices;
  return std::max<int64_t>(1, kPublished / sharing);
}

// A document while it is scored.
struct OpenDocument {
  DocumentRange range;
  ScoreLedger ledger;  // its share
};

class LoraEvaluator final : public Evaluator {
 public:
  LoraEvaluator(const ScoredModel& model, const ScoreSettings& settings, const ScoreContext& context)
      : model_(model),
        score_(settings.score),
        sorted_(settings.score.lora.order == LoraOrder::compat),
        context_(context),
        params_(std::make_shared<ParamStore>(parameter_table(model.recipe), ParamStore::Gradients::none)),
        learner_(model, params_, settings.score, context_, documents_at_once(score_, context)) {
    if (score_.lora.phases == 0) return;
    trained_ = std::make_shared<ParamStore>(parameter_table(model.recipe), ParamStore::Gradients::kept);
    phases_ = std::make_unique<ChunkLearner>(model, trained_, phase_recipe(score_), context_);
    lend_ = copy_of(params_->flat_values(), trained_->flat_values(), *context_.executor);
    give_back_ = copy_of(trained_->flat_values(), params_->flat_values(), *context_.executor);
  }

  void run(ScoreLedger& ledger, const ScoreProgress& progress) override {
    load();
    hints_ = hints_for(score_, ledger.stream(), *context_.pool);
    std::vector<DocumentRange> queue = queue_of(ledger.stream());
    if (!sorted_) leave_out_after(queue, ledger.wanted().end);
    size_t done = 0;
    for (int64_t phase = 1; phase <= score_.lora.phases; ++phase) {
      const size_t before = end_of_batch(queue.size(), documents_before(phase));
      if (before == queue.size()) break;
      score_documents(ledger, std::span(queue).subspan(done, before - done), progress);
      done = before;
      learn_phase(ledger, std::span(queue).first(done), documents_before(phase));
    }
    // No phase learns from these.
    while (!sorted_ && done < queue.size() && queue[done].end <= ledger.wanted().begin) ++done;
    score_documents(ledger, std::span(queue).subspan(done), progress);
  }

  // As if documents were as long as the context and filled every batch: a chunk's window is then half of it on average.
  double estimate(int64_t targets) override {
    load();
    learner_.begin_documents();
    Rng rng(1);
    const int64_t length = std::max(score_.context / 2, score_.lora.chunk);
    std::vector<uint16_t> text(static_cast<size_t>(length) + 1);
    for (uint16_t& token : text) token = static_cast<uint16_t>(rng.below(static_cast<uint64_t>(model_.recipe.model.vocab)));
    ScoreLedger made_up(text);
    made_up.score(length + 1 - score_.lora.chunk, std::vector<TargetScore>(static_cast<size_t>(score_.lora.chunk)));
    const ScoredTokens chunk = made_up.scored(length + 1 - score_.lora.chunk, length + 1);
    const auto documents = static_cast<size_t>(learner_.documents());
    const std::vector<AdapterLearner::Chunk> chunks(documents, {std::span(text).first(text.size() - 1), chunk.targets(), {}});
    const std::vector<ScoredTokens> scored(documents, chunk);
    const auto run = [&] {
      learner_.run(chunks, length, {.gradients = true});
      learner_.learn(scored);
      context_.executor->wait();
    };
    for (int i = 0; i < 2; ++i) run();  // the first run allocates; a device makes a graph of the second
    const double per_target = seconds_of(run) / static_cast<double>(learner_.documents() * score_.lora.chunk);
    // A phase sees at most the whole stream.
    const double sequences = static_cast<double>(score_.lora.phases * targets) / static_cast<double>(score_.context);
    return per_target * static_cast<double>(targets) + (phases_ ? sequences * phases_->seconds_per_sequence() : 0) +
           seconds_for_hints(score_, targets, model_.recipe.model.vocab, *context_.pool);
  }

 private:
  void load() {
    if (as_loaded_) return;
    model_.load(*params_);
    context_.executor->upload(params_->flat_values());
    as_loaded_ = true;
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

  // Documents of about the same length together, so that few wait for the longest.
  void score_run(ScoreLedger& ledger, std::span<const DocumentRange> documents, const ScoreProgress& progress) {
    if (documents.empty()) return;
    std::vector<OpenDocument> open;
    int32_t version = ledger.state_version();
    for (const DocumentRange& document : documents) {
      open.push_back({document, ledger.share(document.first, document.end, version)});
      version += updates_of(document);
    }
    std::vector<OpenDocument*> order;
    for (OpenDocument& document : open) order.push_back(&document);
    const auto longer = [](const OpenDocument* a, const OpenDocument* b) { return a->range.count() > b->range.count(); };
    if (!sorted_) std::stable_sort(order.begin(), order.end(), longer);
    learner_.prepare(window_of(order.front()->range.count()));
    const int64_t before = ledger.scored_count();
    int64_t done = 0;
    const auto batch = static_cast<size_t>(learner_.documents());
    for (size_t at = 0, end = 0, last = 0; at < order.size(); last = end - at, at = end) {
      end = at == 0 ? first_batch(order.size()) : std::min(order.size(), at + batch);
      const bool warm = sorted_ && last == end - at;
      score_batch(std::span(order).subspan(at, end - at), warm ? AdapterLearner::Start::warm : AdapterLearner::Start::cold,
                  [&](int64_t targets) {
                    done += targets;
                    if (progress) progress(before + done, ledger.targets());
                  });
    }
    for (const OpenDocument& document : open) ledger.merge(document.ledger);
  }

  // Inputs of the window that ends a document of so many targets: its chunk counts as if it were whole, so that where a window
  // begins is told by the chunk's place alone, and a document that ends inside it changes nothing before.
  int64_t window_of(int64_t targets) const {
    const int64_t chunk = score_.lora.chunk, whole = (targets + chunk - 1) / chunk * chunk;
    return std::min(whole, std::max(score_.context, chunk));
  }

  // All at the same place of their documents, the longest first; those that end leave the others.
  void score_batch(std::span<OpenDocument* const> documents, AdapterLearner::Start start,
                   const std::function<void(int64_t)>& scored) {
    learner_.begin_documents(start);
    for (int64_t at = 0; !documents.empty(); at += score_.lora.chunk) {
      score_chunks(documents, at);
      int64_t targets = 0;
      for (const OpenDocument* document : documents) targets += std::min(score_.lora.chunk, document->range.count() - at);
      scored(targets);
      learn_chunks(documents = going_on(documents, at), at);
    }
  }

  // Those with targets behind the chunk that begins at target `at` of each.
  std::span<OpenDocument* const> going_on(std::span<OpenDocument* const> documents, int64_t at) const {
    size_t count = 0;
    while (count < documents.size() && documents[count]->range.count() > at + score_.lora.chunk) ++count;
    return documents.first(count);
  }

  void score_chunks(std::span<OpenDocument* const> documents, int64_t at) {
    const int64_t chunk = score_.lora.chunk, length = window_of(at + chunk);
    AdapterLearner::Wanted wanted{.gradients = !going_on(documents, at).empty()};
    std::vector<AdapterLearner::Chunk> chunks;
    for (OpenDocument* document : documents) {
      const auto stream = document->ledger.stream();
      const int64_t first = document->range.first + at, end = std::min(document->range.end, first + chunk);
      const int64_t begin = first - 1 + chunk - length;
      const auto part = [&](int64_t from, int64_t to) {
        return stream.subspan(static_cast<size_t>(from), static_cast<size_t>(to - from));
      };
      chunks.push_back({part(begin, end - 1), part(first, end), hints_.of(first, end)});
      for (int64_t target = first; target < end; ++target) wanted.logits |= document->ledger.captured(target) != nullptr;
    }
    learner_.run(chunks, length, wanted);
    std::vector<TargetScore> scores;
    for (size_t i = 0; i < documents.size(); ++i) {
      const int64_t first = documents[i]->range.first + at, lane = static_cast<int64_t>(i);
      scores.clear();
      for (int64_t row = 0; row < static_cast<int64_t>(chunks[i].targets.size()); ++row) {
        scores.push_back(learner_.score(lane, row));
        if (std::vector<float>* copy = documents[i]->ledger.captured(first + row))
          scores.back() = finish(learner_.distribution(lane, row), learner_.nll(lane, row),
                                 chunks[i].targets[static_cast<size_t>(row)], copy);
      }
      documents[i]->ledger.score(first, scores);
    }
  }

  void learn_chunks(std::span<OpenDocument* const> documents, int64_t at) {
    if (documents.empty()) return;
    std::vector<ScoredTokens> chunks;
    for (const OpenDocument* document : documents) {
      const int64_t first = document->range.first + at;
      chunks.push_back(document->ledger.scored(first, first + score_.lora.chunk));
    }
    learner_.learn(chunks);
    for (size_t i = 0; i < documents.size(); ++i) documents[i]->ledger.updated(chunks[i], UpdateScope::stream);
  }

  std::vector<DocumentRange> queue_of(std::span<const uint16_t> stream) const {
    std::vector<DocumentRange> queue = document_ranges(stream, model_.recipe.model.bos);
    if (sorted_)
      std::stable_sort(queue.begin(), queue.end(),
                       [](const DocumentRange& a, const DocumentRange& b) { return a.count() > b.count(); });
    return queue;
  }
  int64_t documents_before(int64_t phase) const { return score_.lora.phase_documents * phase / score_.lora.phases; }

  // A document that ends sooner has the same scores up to there.
  static void leave_out_after(std::vector<DocumentRange>& queue, int64_t end) {
    std::erase_if(queue, [end](const DocumentRange& document) { return document.first >= end; });
    if (!queue.empty()) queue.back().end = std::min(queue.back().end, end);
  }

  // In the published order the longest documents are those left over when batches are cut from the shortest on, and a phase
  // waits for the end of a batch (record spec §7.1, §7.3).
  size_t first_batch(size_t documents) const {
    const auto batch = static_cast<size_t>(learner_.documents());
    return std::min(documents, sorted_ && documents % batch > 0 ? documents % batch : batch);
  }
  size_t end_of_batch(size_t documents, int64_t wanted) const {
    const size_t least = std::min(documents, static_cast<size_t>(wanted));
    if (!sorted_) return least;
    size_t end = first_batch(documents);
    while (end < least) end += static_cast<size_t>(learner_.documents());
    return end;
  }

  // All weights on every document scored so far, as published on the shortest of them, with a new optimizer.
  void learn_phase(ScoreLedger& ledger, std::span<const DocumentRange> documents, int64_t published) {
    if (documents.empty()) return;
    lend_->run();
    phases_->reset();
    if (sorted_) {
      learn_documents(ledger, documents.last(std::min(documents.size(), static_cast<size_t>(published))));
    } else {
      learn_stream(ledger, documents.back().end);
    }
    give_back_->run();
    as_loaded_ = false;
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

  // The longest first in `documents`, learned from the shortest on: one text of them all, each with the start token behind it.
  void learn_documents(ScoreLedger& ledger, std::span<const DocumentRange> documents) {
    std::vector<uint16_t> text;
    for (auto document = documents.rbegin(); document != documents.rend(); ++document) {
      const ScoredTokens tokens = ledger.scored(document->first, document->end);
      text.push_back(tokens.inputs().front());
      text.insert(text.end(), tokens.targets().begin(), tokens.targets().end());
      ledger.updated(tokens, UpdateScope::stream);
    }
    ScoreLedger copied(text);
    copied.score(1, std::vector<TargetScore>(text.size() - 1));
    learn_stream(copied, static_cast<int64_t>(text.size()));
  }

  ScoredModel model_;
  ScoreRecipe score_;
  bool sorted_;
  ScoreContext context_;
  std::shared_ptr<ParamStore> params_;
  bool as_loaded_ = false;  // no phase has changed them since
  AdapterLearner learner_;
  TiltHints hints_;
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
