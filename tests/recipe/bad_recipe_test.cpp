// Recipes that must be refused with a sentence, and a mutation loop in which nothing but InputError may come out.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "base/error.h"
#include "recipe/recipe.h"

namespace fairway {
namespace {

using testing::HasSubstr;

template <class Work>
std::string refusal(Work&& work) {
  try {
    work();
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

struct BadText {
  std::string text;
  std::vector<std::string> says;  // every part must be in the sentence
};

TEST(BadRecipe, TextIsRefusedWithItsLineAndKey) {
  const std::vector<BadText> cases{
      {"[model]\nvocabs = 5\n", {"bad.toml:2", "model.vocabs", "nearest key is \"model.vocab\""}},
      {"[model]\nrope_dims = 5\n", {"bad.toml:2", "model.rope_dims", "\"model.rope.dims\""}},
      {"[modle]\n", {"bad.toml:1", "modle"}},
      {"[optim.matrix]\n\nlearning_rate = 1\n", {"bad.toml:3", "optim.matrix.learning_rate"}},
      {"[optim]\nmatrix = { lr = 0.1, wdd = 0.1 }\n", {"bad.toml:2", "\"optim.matrix.wd\""}},
      {"seq_len = 2048\n", {"bad.toml:1", "\"data.seq_len\""}},
      {"[model]\ndim = \"512\"\n", {"bad.toml:2", "model.dim = \"512\"", "an integer from 1 to 16384"}},
      {"[model]\ndim = 512.0\n", {"bad.toml:2", "model.dim = 512", "an integer"}},
      {"[model]\ndim = -1\n", {"bad.toml:2", "model.dim = -1", "from 1 to 16384"}},
      {"[model]\ndim = 9223372036854775807\n", {"bad.toml:2", "model.dim", "from 1 to 16384"}},
      {"[model]\ndim = 99999999999999999999\n", {"bad.toml:2", "not valid TOML"}},
      {"[model]\nvocab = 65537\n", {"model.vocab = 65537", "65536"}},
      {"[model]\nsmear = \"yes\"\n", {"bad.toml:2", "model.smear = \"yes\"", "\"none\", \"static\", \"input\""}},
      {"[model]\nsmear = true\n", {"model.smear = true", "one of"}},
      {"[model]\nlayer_scale = 1\n", {"model.layer_scale = 1", "true or false"}},
      {"[model]\nrope = 16\n", {"bad.toml:2", "model.rope = 16", "a table"}},
      {"model = 3\n", {"bad.toml:1", "model = 3", "a table"}},
      {"[model.dim]\nx = 1\n", {"model.dim = a table", "an integer"}},
      {"[[model]]\ndim = 64\n", {"model = a list", "a table"}},
      {"[model.value_embed]\nlayers = 9\n", {"model.value_embed.layers = 9", "a list"}},
      {"[model.value_embed]\nlayers = [9, \"ten\"]\n", {"model.value_embed.layers = \"ten\"", "an integer"}},
      {"[model.value_embed]\nlayers = [-1]\n", {"model.value_embed.layers = -1"}},
      {"[optim.token]\nlr = nan\n", {"optim.token.lr = nan", "from 0 to 100"}},
      {"[optim.token]\nlr = inf\n", {"optim.token.lr = inf"}},
      {"[optim.token]\nlr = 1979-05-27\n", {"optim.token.lr = a date or time"}},
      {"[optim.token]\nlr = 0.1\nlr = 0.2\n", {"bad.toml:3", "not valid TOML"}},
      {"[model\n", {"bad.toml:1", "not valid TOML"}},
      {"[model]\nvocab = \n", {"bad.toml:2", "not valid TOML"}},
      {"[model]\nvocab = \"\x01\"\n", {"bad.toml:2", "not valid TOML"}},
      {std::string("\xff\xfe\x00\x80", 4), {"bad.toml:1", "outside of ASCII"}},
      {std::string("model\0 = 1", 10), {"bad.toml:1", "not valid TOML"}},
      {std::string("x = ").append(5000, '['), {"bad.toml:1", "at most 1000"}},
      {std::string("x = ").append(500, '['), {"bad.toml:1", "not valid TOML"}},
      {std::string("a").append(40, '.').append(" = 1"), {"bad.toml:1", "not valid TOML"}},
  };
  ASSERT_GE(cases.size(), 25U);
  for (const BadText& bad : cases) {
    SCOPED_TRACE(bad.text.substr(0, 80));
    const std::string sentence = refusal([&] { (void)parse_recipe(bad.text, "bad.toml"); });
    for (const std::string& part : bad.says) EXPECT_THAT(sentence, HasSubstr(part));
  }
}

TEST(BadRecipe, DeeplyNestedTextIsRefusedNotRecursed) {
  std::string dotted = "a", lines;
  for (int i = 0; i < 100; ++i) dotted += ".a";
  for (int i = 0; i < 20000; ++i) lines += "x = [\n";
  EXPECT_THAT(refusal([&] { (void)parse_recipe(dotted + " = 1", "deep"); }), HasSubstr("at most 48 dots"));
  EXPECT_THAT(refusal([&] { (void)parse_recipe(std::string("[").append(dotted).append("]"), "deep"); }),
              HasSubstr("at most 48 dots"));
  EXPECT_THAT(refusal([&] { (void)parse_recipe(lines, "deep"); }), HasSubstr("not valid TOML"));
}

// toml++ 3.3 has no defined behaviour for most of them (found by the fuzzer under UBSan).
TEST(BadRecipe, LettersBeyondAsciiStandInCommentsAndStringsAlone) {
  for (const char* text : {"\xC3\xA9 = 1\n", "\n[model]\xC3\xA9\n", "seed = 1 \xC3\xA9\n", "seed = \"\"\"\xC3\xA9\"\"\"\n",
                           "seed = \"a\\\"\"\xC3\xA9\n", "seed = '''a'''''\xC3\xA9\n", "# a\r\xC3\xA9 = 1\n"}) {
    EXPECT_THAT(refusal([&] { (void)parse_recipe(text, "letters"); }), HasSubstr("a character outside of ASCII")) << text;
  }
  EXPECT_THAT(refusal([] { (void)parse_recipe("\n\n\xC3\xA9 = 1\n", "letters"); }), HasSubstr("letters:3:"));
  EXPECT_EQ(parse_recipe("\xEF\xBB\xBF# \xC3\xA9\n[model]\ndim = 64 # 'r\xC3\xA9'\n", "letters").model.dim, 64);
  EXPECT_THAT(refusal([] { (void)parse_recipe("[data]\nsampler = \"\xC3\xA9\\\"\xC3\xA9\"\n", "letters"); }),
              HasSubstr("data.sampler"));
}

struct BadSet {
  std::vector<std::string> overrides;
  std::vector<std::string> says;
};

TEST(BadRecipe, CombinationsAreRefusedWithTheirKeysAndValues) {
  const std::vector<BadSet> cases{
      {{"model.kv_heads=3"}, {"model.kv_heads = 3", "model.heads = 8"}},
      {{"model.heads=7", "model.kv_heads=7"}, {"model.dim = 512", "model.heads = 7"}},
      {{"model.rope.dims=15"}, {"model.rope.dims = 15 is odd"}},
      {{"model.rope.dims=128"}, {"model.rope.dims = 128", "head size", "64"}},
      {{"model.rope.dims=2"}, {"model.rope.dims = 2", "1024"}},
      {{"model.bos=5000"}, {"model.bos = 5000", "model.vocab = 1024"}},
      {{"model.xsa_first_layer=11"}, {"model.xsa_first_layer = 11", "model.layers = 11"}},
      {{"model.bigram.rows=1"}, {"model.bigram.rows = 1"}},
      {{"model.vocab=60000"}, {"model.bigram.rows = 3072", "model.vocab", "60000"}},
      {{"model.value_embed.dim=0"}, {"model.value_embed.dim = 0", "2 layers"}},
      {{"model.value_embed.layers=[]"}, {"model.value_embed.dim = 128", "0 layers"}},
      {{"model.value_embed.layers=[10, 9]"}, {"[10, 9]", "ascending"}},
      {{"model.value_embed.layers=[9, 9]"}, {"[9, 9]", "ascending"}},
      {{"model.value_embed.layers=[11]"}, {"layer 11", "model.layers = 11"}},
      {{"model.loop.count=1", "model.loop.start=5", "model.loop.end=3"}, {"model.loop.start = 5", "model.loop.end = 3"}},
      {{"model.loop.count=1", "model.loop.end=11"}, {"model.loop.end = 11", "model.layers = 11"}},
      {{"model.loop.end=3"}, {"model.loop.end = 3", "model.loop.count = 0"}},
      {{"model.lanes.start=11"}, {"model.lanes.start = 11"}},
      {{"model.lanes.start=3"}, {"model.lanes.start = 3", "second half"}},
      {{"model.lanes.start=8", "model.loop={start=3, end=9, count=1}"}, {"model.lanes.start = 8", "loop"}},
      {{"model.dim=16384", "model.layers=256", "model.mlp_hidden=65536"}, {"parameters; at most"}},
      {{"data.seq_len=1000"}, {"train.micro_batch_tokens = 98304", "data.seq_len = 1000"}},
      {{"train.emulated_world=7"}, {"train.batch_tokens = 786432", "train.emulated_world = 7"}},
      {{"train.emulated_world=16"}, {"49152", "train.micro_batch_tokens = 98304"}},
      {{"train.seconds=0"}, {"train.steps = 0 and train.seconds = 0"}},
      {{"train.reserve_seconds=600"}, {"train.reserve_seconds = 600", "train.seconds = 600"}},
      {{"optim.schedule.clock=steps"}, {"optim.schedule.clock", "train.steps"}},
      {{"optim.schedule.clock=time", "train.seconds=0", "train.steps=5"}, {"optim.schedule.clock", "train.seconds"}},
      {{"optim.matrix.projection_slices=8"}, {"optim.matrix.projection_slices = 8", "optim.matrix.projections"}},
      {{"optim.matrix.projections=true", "optim.matrix.projection_slices=3"}, {"optim.matrix.projection_slices = 3", "512"}},
      {{"average.use=swa"}, {"average.swa.enabled = false", "average.use = \"swa\""}},
      {{"average.swa.enabled=true"}, {"average.swa.enabled = true", "average.use = \"ema\""}},
      {{"quant.rule=gptq_lite", "quant.scale=sdclip"}, {"gptq_lite", "quant.scale = \"sdclip\""}},
      {{"quant.rule=rtn", "quant.mixed.count=0", "quant.scale=hessian_sdclip"}, {"hessian_sdclip", "needs Hessians"}},
      {{"quant.gate_bits=1"}, {"quant.gate_bits = 1"}},
      {{"quant.rule=rtn", "quant.mixed.count=3"}, {"quant.mixed.count = 3"}},
      {{"score.lora.sites={q=false, k=false, v=false, o=false, mlp=false, head=false}"}, {"score.lora.sites", "no site"}},
      {{"score.stride=4096"}, {"score.stride = 4096", "score.context = 2048"}},
      {{"model.dim=8", "model.heads=1", "model.kv_heads=1", "model.rope.dims=4", "model.attn_gate=sparse"},
       {"model.attn_gate", "12 channels"}},
  };
  for (const BadSet& bad : cases) {
    SCOPED_TRACE(bad.overrides.back());
    const std::string sentence = refusal([&] { (void)load_recipe("pr1105", bad.overrides); });
    EXPECT_THAT(sentence, HasSubstr("pr1105"));
    for (const std::string& part : bad.says) EXPECT_THAT(sentence, HasSubstr(part));
  }
}

TEST(BadRecipe, OverridesAreRefusedWithTheirText) {
  const auto refused = [](std::string change) {
    return refusal([&] { (void)load_recipe("pr1105", std::vector<std::string>{std::move(change)}); });
  };
  EXPECT_THAT(refused("quant.allocator=true"), HasSubstr("quant.allocator"));  // pack's flags decide that
  EXPECT_THAT(refused("optim.matrix.Lr=0.1"), HasSubstr("nearest key is \"optim.matrix.lr\""));
  EXPECT_THAT(refused("optim.matrix.lr"), HasSubstr("expected key=value"));
  EXPECT_THAT(refused("=3"), HasSubstr("expected key=value"));
  EXPECT_THAT(refused("optim.matrix.lr="), HasSubstr("--set optim.matrix.lr="));
  EXPECT_THAT(refused("optim.matrix.lr=fast"), HasSubstr("optim.matrix.lr = \"fast\""));
  EXPECT_THAT(refused("model.dim=64\nmodel.heads=1"), HasSubstr("--set"));
  EXPECT_THAT(refused("a b=1"), HasSubstr("expected a dotted key"));
  EXPECT_THAT(refused(std::string(3000, 'a') + "=1"), HasSubstr("at most 1000"));
}

TEST(BadRecipe, NamesAndFilesAreRefused) {
  EXPECT_THAT(refusal([] { (void)load_recipe("pr1150"); }), HasSubstr("nearest built-in one is \"pr1105\""));
  EXPECT_THAT(refusal([] { (void)load_recipe(""); }), HasSubstr("nor a built-in recipe"));
  EXPECT_THAT(refusal([] { (void)load_recipe("/"); }), HasSubstr("is a folder"));
  EXPECT_THAT(refusal([] { (void)load_recipe(std::string(100000, 'x')); }), HasSubstr("nor a built-in recipe"));
  const auto path = std::filesystem::temp_directory_path() / "fairway_long_recipe.toml";
  std::ofstream(path) << std::string(2 << 20, '\n');
  EXPECT_THAT(refusal([&] { (void)load_recipe(path.string()); }), HasSubstr("longer than"));
  std::filesystem::remove(path);
}

TEST(BadRecipe, MutatedTextNeverDoesWorseThanInputError) {
  std::mt19937 random(20260520);
  const auto below = [&random](size_t n) { return static_cast<size_t>(random() % n); };
  const std::string pieces[] = {"[", "]",     "{",   "}",  "=",   ".",    "\"",    "'''", "\n",
                                "-", "1e999", "nan", "0x", "\\u", "\xff", "model", "# "};
  int accepted = 0, refused = 0;
  for (int round = 0; round < 4000; ++round) {
    const auto builtins = builtin_recipes();
    std::string text(builtins[below(builtins.size())].text);
    for (size_t edits = 1 + below(4); edits > 0; --edits) {
      const size_t at = below(text.size());
      switch (below(5)) {
        case 0: text[at] = static_cast<char>(below(256)); break;
        case 1: text.erase(at, 1 + below(8)); break;
        case 2: text.insert(at, pieces[below(std::size(pieces))]); break;
        case 3: text.insert(at, text.substr(below(text.size()), below(40))); break;
        default: text[at] = static_cast<char>('0' + below(10)); break;
      }
    }
    try {
      const Recipe recipe = parse_recipe(text, "mutated");
      validate(recipe, "mutated");
      EXPECT_TRUE(parse_recipe(to_toml(recipe), "dump") == recipe);
      ++accepted;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr("mutated"));
      ++refused;
    }
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace fairway
