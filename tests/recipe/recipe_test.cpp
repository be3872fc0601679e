// Round trips of every key, the built-in recipes' published values (spec §13), overrides, JSON and hash.
#include "recipe/recipe.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/error.h"
#include "recipe/recipe_json.h"

namespace fairway {
namespace {

using testing::HasSubstr;

Recipe with(std::initializer_list<std::string> overrides, std::string_view name = "pr1105") {
  const std::vector<std::string> list(overrides);
  return load_recipe(name, list);
}

// Some value of the key other than its default, as TOML.
std::string other_value(const KeyInfo& info) {
  if (info.type == "boolean") return info.default_value == "true" ? "false" : "true";
  if (info.type == "list of integers") return "[3, 1]";
  if (info.type == "word") {
    const std::string last = info.allowed.substr(info.allowed.rfind(' ') + 1);
    const std::string first = info.allowed.substr(0, info.allowed.find(','));
    return info.default_value == "\"" + last + "\"" ? first : last;
  }
  const std::string least = info.allowed.substr(0, info.allowed.find(' '));
  if (info.type == "integer")
    return std::stoll(info.default_value) != std::stoll(least) ? least : std::to_string(std::stoll(least) + 1);
  return std::stod(info.default_value) != std::stod(least) ? least : "0.123456789012345";
}

TEST(Recipe, EveryKeyRoundTripsThroughTheCanonicalText) {
  const Recipe defaults;
  std::set<std::string> hashes{recipe_hash(defaults)};
  for (const KeyInfo& info : recipe_keys()) {
    SCOPED_TRACE(info.key);
    Recipe changed;
    apply_override(changed, info.key + "=" + other_value(info));
    EXPECT_FALSE(changed == defaults);
    const std::string text = to_toml(changed);
    const Recipe back = parse_recipe(text, "dump");
    EXPECT_TRUE(back == changed) << text;
    EXPECT_EQ(to_toml(back), text);
    EXPECT_TRUE(hashes.insert(recipe_hash(changed)).second) << "two recipes with one hash";
    EXPECT_FALSE(info.help.empty());
    EXPECT_FALSE(info.allowed.empty());
  }
  EXPECT_EQ(hashes.size(), recipe_keys().size() + 1);
}

TEST(Recipe, BuiltinRecipesLoadAndRoundTrip) {
  std::vector<std::string> names;
  for (const BuiltinRecipe& builtin : builtin_recipes()) {
    SCOPED_TRACE(builtin.name);
    names.emplace_back(builtin.name);
    const Recipe recipe = load_recipe(builtin.name);
    EXPECT_TRUE(parse_recipe(to_toml(recipe), "dump") == recipe);
    EXPECT_FALSE(builtin.summary.empty());
  }
  EXPECT_EQ(names, (std::vector<std::string>{"smoke", "demo", "pr726", "pr1072", "pr1105-early", "pr1105", "pr1584", "best",
                                             "record"}));
}

struct Published {
  const char* name;
  int64_t vocab, hidden, bigram_rows, bigram_dim, xsa, reference_length;
  double q_gain, matrix_lr, token_lr, scalar_lr, momentum, matrix_wd, scalar_wd, token_wd, beta2, reserve, warmdown, floor, ema;
  NewtonSchulzSet newton_schulz;
  SamplerKind sampler;
};

// One system per row.
// clang-format off
constexpr Published kPublished[] = {
    {"pr726", 1024, 1536, 2048, 128, 7, 1024, 1.5, 0.025, 0.035, 0.025, 0.99, 0.04, 0.04, 0.04, 0.95, 0, 3500, 0, 0.997,
     NewtonSchulzSet::ns5, SamplerKind::coprime},
    {"pr1072", 1024, 1536, 4096, 128, 0, 2048, 1.5, 0.025, 0.035, 0.025, 0.99, 0.04, 0.04, 0.04, 0.99, 0, 3000, 0, 0.997,
     NewtonSchulzSet::ns5, SamplerKind::sequential},
    {"pr1105-early", 1024, 1536, 3072, 112, 0, 1024, 1.5, 0.025, 0.035, 0.025, 0.99, 0.04, 0.04, 0.04, 0.95, 0, 4000, 0, 0.997,
     NewtonSchulzSet::turbo4, SamplerKind::coprime},
    {"pr1105", 1024, 1792, 3072, 112, 0, 1024, 1.5, 0.025, 0.035, 0.025, 0.99, 0.04, 0.04, 0.04, 0.95, 0, 4000, 0.05, 0.997,
     NewtonSchulzSet::ns5, SamplerKind::coprime},
    {"pr1584", 8192, 2048, 0, 128, 0, 2048, 5, 0.022, 0.03, 0.02, 0.97, 0.095, 0.02, 0.085, 0.95, 13, 0.667, 0, 0.9965,
     NewtonSchulzSet::ns5, SamplerKind::shuffled},
    {"best", 8192, 2048, 0, 128, 0, 2048, 5, 0.026, 0.03, 0.02, 0.97, 0.095, 0.02, 0.085, 0.99, 0.5, 0.85, 0.1, 0.9965,
     NewtonSchulzSet::polar5, SamplerKind::docpack},
    {"record", 8192, 2048, 0, 128, 0, 2048, 5, 0.028, 0.03, 0.02, 0.97, 0.095, 0.02, 0.085, 0.99, 8, 0.85, 0.1, 0.9965,
     NewtonSchulzSet::polar5, SamplerKind::docpack},
};
// clang-format on

TEST(Recipe, PublishedValuesAreThoseOfTheTable) {
  for (const Published& p : kPublished) {
    SCOPED_TRACE(p.name);
    const Recipe r = load_recipe(p.name);
    const bool late = r.model.vocab == 8192;
    EXPECT_EQ(r.model.vocab, p.vocab);
    EXPECT_EQ(r.model.mlp_hidden, p.hidden);
    EXPECT_EQ(r.model.bigram.rows, p.bigram_rows);
    EXPECT_EQ(r.model.bigram.dim, p.bigram_dim);
    EXPECT_EQ(r.model.xsa_first_layer, p.xsa);
    EXPECT_EQ(r.model.rope.reference_length, p.reference_length);
    EXPECT_EQ(r.model.q_gain_init, p.q_gain);
    EXPECT_EQ(r.model.skip, late ? SkipKind::gated : SkipKind::additive);
    EXPECT_EQ(r.model.loop.count, late ? 2 : 0);
    EXPECT_EQ(r.model.lanes.start, late ? 8 : -1);
    EXPECT_EQ(r.model.value_embed.layers, late ? std::vector<int64_t>{} : (std::vector<int64_t>{9, 10}));
    EXPECT_EQ(r.optim.matrix.lr, p.matrix_lr);
    EXPECT_EQ(r.optim.matrix.wd, p.matrix_wd);
    EXPECT_EQ(r.optim.matrix.momentum, p.momentum);
    EXPECT_EQ(r.optim.matrix.newton_schulz, p.newton_schulz);
    EXPECT_EQ(r.optim.matrix.row_norm, late);
    EXPECT_EQ(r.optim.token.lr, p.token_lr);
    EXPECT_EQ(r.optim.token.wd, p.token_wd);
    EXPECT_EQ(r.optim.scalar.lr, p.scalar_lr);
    EXPECT_EQ(r.optim.scalar.wd, p.scalar_wd);
    EXPECT_EQ(r.optim.token.beta2, p.beta2);
    EXPECT_EQ(r.optim.scalar.beta2, p.beta2);
    EXPECT_EQ(r.optim.clip, 0.3);
    EXPECT_EQ(late ? r.optim.schedule.warmdown_fraction : r.optim.schedule.warmdown_iters, p.warmdown);
    EXPECT_EQ(r.optim.schedule.style, late ? ScheduleStyle::fraction : ScheduleStyle::iterations);
    EXPECT_EQ(r.optim.schedule.floor, p.floor);
    EXPECT_EQ(r.average.ema_decay, p.ema);
    EXPECT_EQ(r.train.seconds, 600);
    EXPECT_EQ(r.train.reserve_seconds, p.reserve);
    EXPECT_EQ(r.train.batch_tokens, 786432);
    EXPECT_EQ(r.train.micro_batches(), 8);
    EXPECT_EQ(r.data.seq_len, 2048);
    EXPECT_EQ(r.data.sampler, p.sampler);
    EXPECT_FALSE(r.train.qat.enabled);
    EXPECT_FALSE(r.average.swa.enabled);
  }
  EXPECT_EQ(load_recipe("pr1072").optim.matrix.projection_slices, 8);
  EXPECT_TRUE(load_recipe("pr1105-early").optim.matrix.aol);
  EXPECT_EQ(load_recipe("pr1105-early").optim.matrix.post_norm, PostNorm::rows_columns);
  EXPECT_EQ(load_recipe("best").model.smear, SmearKind::input);
  EXPECT_EQ(load_recipe("best").model.attn_gate, AttnGateKind::sparse);
}

// Each ends in the evaluation that its published score comes from (scoring spec §2.5, §2.6, record spec §7).
TEST(Recipe, PublishedRecipesEndInTheirEvaluation) {
  for (const char* name : {"pr726", "pr1584"}) EXPECT_EQ(name_of(load_recipe(name).score.mode), "ttt") << name;
  EXPECT_EQ(name_of(load_recipe("best").score.mode), "lora-ttt");
  EXPECT_EQ(name_of(load_recipe("record").score.mode), "lora-ttt+tilt");
  for (const char* name : {"pr1072", "pr1105", "pr1105-early"})
    EXPECT_EQ(name_of(load_recipe(name).score.mode), "sliding") << name;
  EXPECT_EQ(load_recipe("best").score.lora.phases, 3);
  EXPECT_EQ(load_recipe("best").score.lora.phase_documents, 2500);
  EXPECT_EQ(load_recipe("pr726").score.ttt.frozen_blocks, 2);
  EXPECT_EQ(load_recipe("pr1584").score.ttt.chunk, 32000);
}

TEST(Recipe, TheRecordDiffersFromBestAsItsSpecSays) {
  Recipe record = load_recipe("record");
  const Recipe best = load_recipe("best");
  EXPECT_TRUE(record.model == best.model);
  EXPECT_TRUE(record.model.smear_bos_mask);
  EXPECT_EQ(record.quant.gate_bits, 0);
  EXPECT_EQ(best.quant.gate_bits, 8);
  EXPECT_EQ(record.quant.calibration_batches, 32);
  EXPECT_EQ(best.quant.calibration_batches, 16);
  EXPECT_EQ(record.quant.lqer.group, 32);
  EXPECT_EQ(best.quant.lqer.group, 64);
  EXPECT_EQ(record.score.context, 2560);
  EXPECT_FALSE(record.score.lora.sites.k);
  EXPECT_TRUE(record.score.lora.sites == (LoraSites{.k = false}));
  EXPECT_EQ(record.score.lora.lr, 8e-5);
  EXPECT_EQ(record.score.lora.wd, 2.0);
  EXPECT_EQ(record.score.lora.phases, 1);
  EXPECT_EQ(record.score.ngram.order, 15);
  EXPECT_EQ(record.score.ngram.beta, 2.625);
  EXPECT_EQ(record.score.ngram.threshold, 0.8);
  // Nothing else.
  record.optim.matrix.lr = best.optim.matrix.lr;
  record.train.reserve_seconds = best.train.reserve_seconds;
  record.train.validate_every = best.train.validate_every;
  record.quant = best.quant;
  record.score = best.score;
  EXPECT_TRUE(record == best);
}

TEST(Recipe, OverridesTakeWordsNumbersListsAndTables) {
  const Recipe r = with({"model.smear=none", "optim.matrix.lr = 0.5", "model.value_embed.layers=[0, 4]", "model.softcap=15",
                         "train.qat={enabled=true, bits=5}", "score.mode=\"plain\""});
  EXPECT_EQ(r.model.smear, SmearKind::none);
  EXPECT_EQ(r.optim.matrix.lr, 0.5);
  EXPECT_EQ(r.model.value_embed.layers, (std::vector<int64_t>{0, 4}));
  EXPECT_EQ(r.model.softcap, 15);
  EXPECT_EQ(r.train.qat.bits, 5);
  EXPECT_EQ(name_of(r.score.mode), "plain");
  EXPECT_EQ(with({"train.seed=1", "train.seed=2"}).train.seed, 2);
}

TEST(Recipe, AnOverrideThatFailsChangesNothing) {
  Recipe r;
  EXPECT_THROW(apply_override(r, "model={dim=64, heads=0}"), InputError);
  EXPECT_TRUE(r == Recipe{});
}

TEST(Recipe, FileAndBuiltinTextGiveTheSameRecipe) {
  const auto path = std::filesystem::temp_directory_path() / "fairway_recipe_test.toml";
  std::ofstream(path, std::ios::binary) << to_toml(load_recipe("best"));
  EXPECT_TRUE(load_recipe(path.string()) == load_recipe("best"));
  EXPECT_TRUE(load_recipe(std::string(FAIRWAY_SOURCE_DIR) + "/recipes/best.toml") == load_recipe("best"));
  std::filesystem::remove(path);
}

TEST(Recipe, JsonHasTheSameKeysAsTheTable) {
  const nlohmann::ordered_json json = to_json_value(load_recipe("best"));
  EXPECT_EQ(json["model"]["loop"]["count"], 2);
  EXPECT_EQ(json["optim"]["matrix"]["newton_schulz"], "polar5");
  EXPECT_EQ(json["model"]["smear"], "input");
  EXPECT_EQ(json.flatten().size(), recipe_keys().size());  // the empty list of layers counts as one leaf
}

TEST(Recipe, HashIsTheSha256OfTheCanonicalText) {
  EXPECT_EQ(recipe_hash(load_recipe("best")).size(), 64U);
  EXPECT_EQ(recipe_hash(load_recipe("best")), recipe_hash(load_recipe("best")));
  EXPECT_NE(recipe_hash(load_recipe("best")), recipe_hash(load_recipe("pr1584")));
  EXPECT_THAT(to_toml(Recipe{}), HasSubstr("\n[model.rope]\ndims = 16\nbase = 10000.0\n"));
}

TEST(Recipe, ClockFollowsStepsUnlessToldOtherwise) {
  EXPECT_EQ(schedule_clock(with({})), ScheduleClock::time);
  EXPECT_EQ(schedule_clock(with({"train.steps=10"})), ScheduleClock::steps);
  EXPECT_EQ(schedule_clock(with({"train.steps=10", "optim.schedule.clock=time"})), ScheduleClock::time);
}

TEST(Recipe, PackedDocumentsAreScoredInsideUnlessSaidOtherwise) {
  const auto inside = [](const char* name, std::vector<std::string> overrides) {
    return load_recipe(name, overrides).score.documents;
  };
  EXPECT_TRUE(inside("best", {}));
  EXPECT_FALSE(inside("pr1584", {}));
  EXPECT_TRUE(inside("pr1584", {"data.sampler=docpack"}));
  EXPECT_FALSE(inside("pr1584", {"data.sampler=docpack", "score.documents=false"}));
  EXPECT_FALSE(inside("pr1584", {"score.documents=false", "data.sampler=docpack"}));
  EXPECT_TRUE(inside("pr1584", {"score.documents=true"}));
  EXPECT_FALSE(inside("best", {"score.documents=false"}));
}

TEST(Recipe, OnlyTheInputSmearHasAMask) {
  const std::vector<std::string> off{"model.smear_bos_mask=false"};
  EXPECT_FALSE(load_recipe("best", off).model.smear_bos_mask);
  EXPECT_THROW(load_recipe("pr1584", off), InputError);
}

}  // namespace
}  // namespace fairway
