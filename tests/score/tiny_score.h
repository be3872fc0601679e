// A model, a tokenizer's tables and a stream small enough to score many times in a second.
#pragma once

#include <cstring>
#include <memory>

#include "backends/backends.h"
#include "base/rng.h"
#include "model/shape/model_shape.h"
#include "score/evaluator.h"

namespace fairway::score_test {

inline constexpr int64_t kVocab = 61, kContext = 96, kStride = 16;

// A bit of everything: skips, smearing, pairs, value embeddings; lanes and a loop on request.
inline Recipe tiny_recipe(bool lanes = false) {
  Recipe recipe;
  recipe.data.seq_len = kContext;
  ModelRecipe& model = recipe.model;
  model.vocab = kVocab;
  model.dim = 32;
  model.layers = 3;
  model.heads = 4;
  model.kv_heads = 2;
  model.mlp_hidden = 48;
  model.softcap = 15;
  model.layer_scale = true;
  model.xsa_first_layer = 1;
  model.rope = {.dims = 4, .base = 10000, .reference_length = 1024};
  model.bigram = {.rows = 64, .dim = 8};
  if (lanes) {
    model.layers = 5;
    model.skip = SkipKind::gated;
    model.loop = {.start = 1, .end = 2, .count = 1, .at_fraction = 0};
    model.lanes = {.start = 4, .resid_init = 1.1, .post_init = 1.0};
  } else {
    model.smear = SmearKind::constant;
    model.skip = SkipKind::additive;
    model.value_embed = {.dim = 8, .layers = {2}};
  }
  recipe.score.context = kContext;
  recipe.score.stride = kStride;
  recipe.score.slot.positions = 80;
  recipe.score.slot.lr = 0.02;
  recipe.score.ttt.chunk = 2 * kContext;
  recipe.score.ttt.lr = 0.05;
  recipe.score.ngram.table_bits = 12;
  recipe.score.ngram.order = 4;  // short enough for text of a few hundred tokens
  recipe.score.ngram.threshold = 0.5;
  recipe.score.ngram.beta = 1.5;
  recipe.score.lora.rank = 4;
  recipe.score.lora.alpha = 8;
  recipe.score.lora.chunk = 12;
  recipe.score.lora.lr = 0.01;
  return recipe;
}

// Token 1 starts documents; of the others every third begins with a space, the last ten are bytes.
inline ByteTables tiny_tables() {
  ByteTables tables{std::vector<uint16_t>(kVocab, 3), std::vector<uint8_t>(kVocab, 0), std::vector<uint8_t>(kVocab, 0)};
  for (size_t id = 0; id < kVocab; ++id) {
    if (id < 3) tables.base[id] = 0, tables.bound[id] = 1;
    if (id >= 3 && id % 3 == 0) tables.lead[id] = 1;
    if (id >= kVocab - 10) tables.base[id] = 1, tables.lead[id] = 0;
  }
  return tables;
}

// Words of a few tokens from a small dictionary, so that text repeats; a document start now and then.
inline std::vector<uint16_t> tiny_stream(int64_t targets, uint64_t seed = 5) {
  Rng rng(seed);
  std::vector<std::vector<uint16_t>> words;
  for (int i = 0; i < 12; ++i) {
    words.push_back({static_cast<uint16_t>(3 * (1 + rng.below(15)))});
    for (uint64_t k = rng.below(4); k > 0; --k) words.back().push_back(static_cast<uint16_t>(4 + 3 * rng.below(14)));
  }
  std::vector<uint16_t> out{1};
  while (static_cast<int64_t>(out.size()) <= targets) {
    if (rng.below(25) == 0) out.push_back(1);
    const auto& word = words[rng.below(4) == 0 ? rng.below(words.size()) : out.size() / 7 % words.size()];
    out.insert(out.end(), word.begin(), word.end());
  }
  out.resize(static_cast<size_t>(targets) + 1);
  return out;
}

inline ScoredModel tiny_model(const Recipe& recipe = tiny_recipe()) {
  auto weights = std::make_shared<ParamStore>(parameter_table(recipe), ParamStore::Gradients::none);
  for (const ParamBank& bank : weights->banks()) {
    Rng rng(std::hash<std::string>{}(bank.info.name));
    for (int64_t i = 0; i < bank.value.numel(); ++i) bank.value.as<float>()[i] = static_cast<float>(0.3 * rng.normal());
  }
  const auto load = [weights](ParamStore& to) {
    std::memcpy(to.flat_values().data, weights->flat_values().data, weights->flat_values().spec.bytes());
  };
  return {recipe, {.looped = recipe.model.loop.count > 0}, load, tiny_tables()};
}

struct Machine {
  explicit Machine(int threads = 1) : queue(threads), executor(make_cpu_executor(queue)) {}
  ScoreContext context() { return {executor.get(), &queue.pool()}; }
  Queue queue;
  std::unique_ptr<Executor> executor;
};

inline ScoreSettings settings_of(const Recipe& recipe, const ScoringMode& mode) {
  ScoreSettings settings{.score = recipe.score};
  settings.score.mode = mode;
  return settings;
}
inline ScoreSettings settings_of(const Recipe& recipe, ScoreMode mode) { return settings_of(recipe, ScoringMode{mode}); }

inline ScoreLedger score(const ScoredModel& model, const ScoreSettings& settings, std::span<const uint16_t> stream,
                         int threads = 1) {
  Machine machine(threads);
  ScoreLedger ledger = make_ledger(stream, settings);
  make_evaluator(model, settings, machine.context())->run(ledger, {});
  return ledger;
}

// Equal NLLs and digests, bit for bit, of targets 1 … end − 1.
inline bool same_records(const ScoreLedger& a, const ScoreLedger& b, int64_t end) {
  for (int64_t target = 1; target < end; ++target) {
    const float x = a.nll(target), y = b.nll(target);
    if (std::memcmp(&x, &y, sizeof x) != 0 || a.digest(target) != b.digest(target)) return false;
  }
  return true;
}

}  // namespace fairway::score_test
