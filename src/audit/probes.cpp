#include "audit/probes.h"

#include <algorithm>
#include <functional>
#include <map>

#include "base/rng.h"
#include "score/documents.h"
#include "score/windows.h"

namespace fairway {
namespace {

constexpr int64_t kRanks = 8;  // of the machine the challenge is scored on
constexpr int64_t kMostEdges = 8;

// A token drawn among those that `wanted` accepts; -1 when there are none.
int32_t draw_token(Rng& rng, int64_t vocab, const std::function<bool(size_t)>& wanted) {
  std::vector<uint16_t> fitting;
  for (int64_t id = 0; id < vocab; ++id)
    if (wanted(static_cast<size_t>(id))) fitting.push_back(static_cast<uint16_t>(id));
  return fitting.empty() ? -1 : fitting[rng.below(fitting.size())];
}

}  // namespace

std::vector<Cut> cut_positions(std::span<const uint16_t> stream, const ScoredModel& model, const ScoreSettings& settings,
                               int64_t random, uint64_t seed) {
  const auto targets = static_cast<int64_t>(stream.size()) - 1;
  const int64_t length = settings.score.context;
  const int64_t stride = settings.score.mode.base == ScoreMode::plain ? length : settings.score.stride;
  std::map<int64_t, std::string> cuts;
  const auto add = [&](int64_t target, const std::string& what) {
    if (target >= 1 && target <= targets) cuts.emplace(target, what);
  };
  const auto around = [&](int64_t target, const std::string& what) {
    for (const int64_t off : {-1, 0, 1}) add(target + off, what);
  };
  // Of edges that come again and again: one in the middle, or with many probes all of them, up to a limit.
  const auto edges = [&](int64_t count, const std::string& what, const std::function<int64_t(int64_t)>& edge) {
    const int64_t some = random >= kThorough ? std::min(count, kMostEdges) : std::min<int64_t>(count, 1);
    for (int64_t i = 0; i < some; ++i) around(edge(count * (2 * i + 1) / (2 * some)), what);
  };
  add(1, "start");
  for (const int64_t at : {length, length + stride - 1, length + stride}) add(at, "window edge");
  const int64_t chunk = settings.score.mode.base == ScoreMode::ttt        ? settings.score.ttt.chunk
                        : settings.score.mode.base == ScoreMode::lora_ttt ? settings.score.lora.chunk
                                                                          : targets;
  edges((targets - 1) / chunk, "chunk edge", [&](int64_t i) { return (i + 1) * chunk; });
  const std::vector<DocumentRange> documents = document_ranges(stream, model.recipe.model.bos);
  edges(static_cast<int64_t>(documents.size()) - 1, "document edge",
        [&](int64_t i) { return documents[static_cast<size_t>(i) + 1].first; });
  const WindowPlan plan(targets, length, stride);
  edges(std::min(kRanks, plan.count()) - 1, "rank edge",
        [&](int64_t i) { return plan.at(share_of_windows(plan.count(), i + 1, std::min(kRanks, plan.count())).begin).first; });
  Rng rng(seed);
  for (int64_t i = 0; i < random; ++i) add(1 + static_cast<int64_t>(rng.below(static_cast<uint64_t>(targets))), "random");
  std::vector<Cut> out;
  out.reserve(cuts.size());
  for (const auto& [target, what] : cuts) out.push_back({target, what});
  return out;
}

DocumentPart most_documents(std::span<const uint16_t> text, int64_t length, int64_t bos) {
  std::vector<int64_t> starts;
  const auto size = static_cast<int64_t>(text.size());
  for (int64_t at = 0; at < size; ++at)
    if (text[static_cast<size_t>(at)] == bos) starts.push_back(at);
  DocumentPart best;
  for (size_t i = 0, end = 0; i < starts.size() && starts[i] + length <= size; ++i) {
    while (end < starts.size() && starts[end] < starts[i] + length) ++end;
    if (const auto count = static_cast<int64_t>(end - i); count > best.documents) best = {starts[i], count};
  }
  return best;
}

std::string_view name_of_mutation(Mutation mutation) {
  constexpr std::array<std::string_view, kMutations> kNames{"random suffix", "one token flipped", "constant suffix",
                                                            "all document starts", "suffix deleted"};
  return kNames[static_cast<size_t>(mutation)];
}

std::vector<uint16_t> mutate(std::span<const uint16_t> stream, int64_t cut, Mutation mutation, const ModelRecipe& model,
                             uint64_t seed) {
  std::vector<uint16_t> out(stream.begin(), stream.end());
  const auto at = static_cast<size_t>(cut);
  const auto vocab = static_cast<uint64_t>(model.vocab);
  Rng rng(seed, static_cast<uint64_t>(cut));
  switch (mutation) {
    case Mutation::random:
      for (size_t i = at; i < out.size(); ++i) out[i] = static_cast<uint16_t>(rng.below(vocab));
      break;
    case Mutation::flip: out[at] = static_cast<uint16_t>((out[at] + 1 + rng.below(vocab - 1)) % vocab); break;
    case Mutation::constant: std::fill(out.begin() + cut, out.end(), static_cast<uint16_t>(rng.below(vocab))); break;
    case Mutation::all_bos: std::fill(out.begin() + cut, out.end(), static_cast<uint16_t>(model.bos)); break;
    case Mutation::deleted: out.resize(at); break;
  }
  return out;
}

std::vector<uint16_t> replacements(std::span<const uint16_t> stream, int64_t target, const ScoredModel& model, uint64_t seed) {
  const ByteTables& classes = model.bytes;
  const uint16_t old = stream[static_cast<size_t>(target)];
  const int64_t vocab = std::min(model.recipe.model.vocab, static_cast<int64_t>(classes.base.size()));
  Rng rng(seed, static_cast<uint64_t>(target));
  std::vector<uint16_t> out;
  const auto add = [&](int32_t token) {
    if (token >= 0 && token != old) out.push_back(static_cast<uint16_t>(token));
  };
  add(static_cast<int32_t>(model.recipe.model.bos));
  add(draw_token(rng, vocab, [&](size_t id) { return classes.lead[id] != 0; }));
  add(draw_token(rng, vocab, [&](size_t id) { return !classes.lead[id] && !classes.bound[id] && classes.base[id] == 1; }));
  add(draw_token(rng, vocab, [&](size_t id) {
    return classes.lead[id] == classes.lead[old] && classes.bound[id] == classes.bound[old] && id != old;
  }));
  return out;
}

}  // namespace fairway
