#include "bench/adapters_bench.h"

#include <algorithm>

#include "base/error.h"
#include "base/rng.h"
#include "model/initialize.h"
#include "score/adapter_learner.h"

namespace fairway::bench {
namespace {

// A made-up document, its last chunk scored.
class Document {
 public:
  Document(const Recipe& recipe, int64_t window, int64_t documents)
      : text_(made_up(recipe, window + 1)), ledger_(text_), first_(window + 1 - recipe.score.lora.chunk) {
    const auto chunk = static_cast<size_t>(recipe.score.lora.chunk);
    ledger_.score(first_, std::vector<TargetScore>(chunk));
    const ScoredTokens tokens = ledger_.scored(first_, window + 1);
    chunks_.assign(static_cast<size_t>(documents), {std::span(text_).first(text_.size() - 1), tokens.targets()});
    scored_.assign(static_cast<size_t>(documents), tokens);
  }
  std::span<const AdapterLearner::Chunk> chunks() const { return chunks_; }
  std::span<const ScoredTokens> scored() const { return scored_; }

 private:
  static std::vector<uint16_t> made_up(const Recipe& recipe, int64_t count) {
    Rng rng(7);
    std::vector<uint16_t> out(static_cast<size_t>(count));
    for (uint16_t& token : out) token = static_cast<uint16_t>(rng.below(static_cast<uint64_t>(recipe.model.vocab)));
    return out;
  }
  std::vector<uint16_t> text_;
  ScoreLedger ledger_;
  int64_t first_;
  std::vector<AdapterLearner::Chunk> chunks_;  // the same in each
  std::vector<ScoredTokens> scored_;
};

void check_places(const AdapterLearner& learner, int64_t chunk) {
  for (int64_t document = 1; document < learner.documents(); ++document)
    for (int64_t row = 0; row < chunk; ++row)
      if (learner.score(document, row).digest != learner.score(0, row).digest)
        throw WorkError("a document's score depends on its place in the batch; nothing was timed");
}

std::vector<int64_t> windows_of(const Recipe& recipe) {
  const int64_t longest = std::max(recipe.score.context, recipe.score.lora.chunk);
  std::vector<int64_t> out{longest};  // the longest first takes memory for all
  for (const int64_t window : {longest / 2, longest / 4, longest / 8})
    if (window > recipe.score.lora.chunk) out.push_back(window);
  return out;
}

}  // namespace

AdaptersBench bench_adapters(const Recipe& recipe, int64_t documents, double seconds, Executor& executor, ThreadPool& pool) {
  const auto weights = std::make_shared<ParamStore>(parameter_table(recipe), ParamStore::Gradients::none);
  initialize(*weights, recipe.model, 1, pool);
  const ScoredModel model{recipe, {.looped = recipe.model.loop.count > 0}, {}, {}};
  AdapterLearner learner(model, weights, recipe.score, {&executor, &pool}, documents);
  AdaptersBench result{.documents = documents};
  const int64_t chunk = recipe.score.lora.chunk;
  for (const int64_t window : windows_of(recipe)) {
    const Document document(recipe, window, documents);
    const auto work = [&] {
      learner.run(document.chunks(), window, {.gradients = true});
      learner.learn(document.scored());
      executor.wait();
    };
    learner.begin_documents();
    for (int step = 0; step < 2; ++step) work();
    learner.run(document.chunks(), window, {.gradients = true});
    check_places(learner, chunk);
    const Timing timing = measure(work, seconds);
    result.lines.push_back({window, timing, static_cast<double>(documents * chunk) / timing.median});
    if (result.ops.empty()) result.ops = op_table(executor, learner.last_session(), 2);
  }
  return result;
}

}  // namespace fairway::bench
