// The table of names: both ways give the same weights, docs/interchange.md is written from it, and recipes are told by shapes.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <regex>

#include "app/program.h"
#include "base/error.h"
#include "base/file.h"
#include "base/rng.h"
#include "data/scratch_folder.h"
#include "interchange/export_weights.h"
#include "interchange/fit.h"
#include "interchange/guess_recipe.h"
#include "interchange/samples.h"

namespace fairway::interchange {
namespace {

using testing::HasSubstr;

std::shared_ptr<ParamStore> random_params(const Recipe& recipe) {
  auto params = std::make_shared<ParamStore>(parameter_table(recipe), ParamStore::Gradients::none);
  Rng rng(5);
  for (const ParamBank& bank : params->banks())
    for (int64_t i = 0; i < bank.value.numel(); ++i) bank.value.as<float>()[i] = static_cast<float>(rng.uniform01()) - 0.5F;
  return params;
}

std::string safetensors_of(const std::vector<NamedTensor>& tensors) {
  std::string bytes = safetensors_header(tensors, {});
  for (const NamedTensor& entry : tensors)
    bytes.append(reinterpret_cast<const char*>(entry.tensor.data), entry.tensor.spec.bytes());
  return bytes;
}

TEST(Names, WhatIsExportedIsImportedBitForBit) {
  for (const char* name : {"smoke", "demo"}) {
    const Recipe recipe = load_recipe(name);
    const auto params = random_params(recipe);
    for (const NameStyle style : kNameStyles) {
      const std::vector<NamedTensor> tensors = named_tensors(*params, recipe.model.layers, style);
      for (const std::string& file : {safetensors_of(tensors), torch_file_of(tensors, "w.pt")}) {
        const WeightSet set = read_weight_set(file, "w");
        const GuessedRecipe guess = guess_recipe(set, {});
        EXPECT_EQ(guess.name, name);
        EXPECT_THAT(guess.why, HasSubstr("only built-in recipe"));
        const Loaded loaded = load(set, recipe, false);
        EXPECT_EQ(
            std::memcmp(loaded.params->flat_values().data, params->flat_values().data, params->flat_values().spec.bytes()), 0)
            << name;
      }
    }
  }
}

WeightSet shapes_of(const ModelRecipe& model, const std::string& name, NameStyle style) {
  WeightSet set{.name = name + ".pt", .format = "made", .weights = {}, .metadata = {}};
  for (const ParamInfo& info : parameter_table(model))
    for (const TensorPlace& place : tensor_places(info, model.layers, style))
      set.weights[place.name] = {place.shape, "f32", [] { return std::vector<float>{30}; }};
  return set;
}
WeightSet shapes_alone(const std::string& recipe, NameStyle style) {
  return shapes_of(load_recipe(recipe).model, recipe, style);
}

// Recipes with the same shapes are one model, or the user is asked.
TEST(Names, RecipesAreToldByShapes) {
  for (const BuiltinRecipe& builtin : builtin_recipes()) {
    const std::string name(builtin.name);
    for (const NameStyle style : {NameStyle::published, NameStyle::per_layer}) {
      try {
        EXPECT_EQ(guess_recipe(shapes_alone(name, style), {}).recipe.model, load_recipe(name).model) << name;
      } catch (const InputError& error) {
        EXPECT_THAT(std::string(error.what()), testing::AllOf(HasSubstr(name), HasSubstr("say which with --recipe")));
      }
    }
  }
  for (const char* name : {"smoke", "demo", "pr726", "pr1072", "pr1105-early", "pr1105", "pr1584"})
    EXPECT_EQ(guess_recipe(shapes_alone(name, NameStyle::published), {}).name, name);
  WeightSet record = shapes_alone("record", NameStyle::published);
  for (const char* constant : {"softcap_pos", "softcap_neg"})
    record.weights[constant] = {{}, "f32", [] { return std::vector<float>{30}; }};
  EXPECT_EQ(guess_recipe(record, {}).name, "record");
  EXPECT_THAT(guess_recipe(record, {}).why, HasSubstr("softcap_pos"));
}

TEST(Names, SizesThatNoRecipeHasAreListedWithWhatToGive) {
  try {
    guess_recipe(sample_set("best_tiny.pt"), {});
    FAIL();
  } catch (const InputError& error) {
    for (const char* part : {"best_tiny.pt", "model.vocab = 96", "model.dim = 32", "model.layers = 6", "model.heads = 4",
                             "model.kv_heads = 2", "model.mlp_hidden = 128", "--recipe best", "--set 'model.dim=32'"})
      EXPECT_THAT(std::string(error.what()), HasSubstr(part));
  }
  // The overrides that it asks for, and what shapes do not tell, make it fit.
  const GuessedRecipe guess =
      guess_recipe(sample_set("best_tiny.pt"), {"model.vocab=96", "model.dim=32", "model.layers=6", "model.heads=4",
                                                "model.kv_heads=2", "model.mlp_hidden=128", "model.rope.dims=4",
                                                "model.loop.start=2", "model.loop.end=3", "model.lanes.start=4"});
  EXPECT_EQ(guess.name, "best");
}

// What a message proposes, as `import` would take it.
std::pair<std::string, std::vector<std::string>> proposed(const std::string& message) {
  std::smatch found;
  std::pair<std::string, std::vector<std::string>> flags;
  if (std::regex_search(message, found, std::regex("--recipe (\\w+)"))) flags.first = found[1];
  const std::regex one("--set '([^']*)'");
  for (auto at = std::sregex_iterator(message.begin(), message.end(), one); at != std::sregex_iterator(); ++at)
    flags.second.push_back((*at)[1]);
  return flags;
}

TEST(Names, WhatIsProposedForOtherSizesTakesTheFile) {
  for (const char* sample : {"pr1105_tiny.pt", "pr1105_tiny_mixed.pt", "pr1105_tiny.int6.ptz", "pr1584_tiny.pt",
                             "pr1584_tiny_unbanked.pt", "best_tiny.pt", "record_tiny_mixed.pt", "record_tiny.pgrp2.ptz"}) {
    SCOPED_TRACE(sample);
    const WeightSet set = sample_set(sample);
    std::string message;
    try {
      guess_recipe(set, {});
    } catch (const InputError& error) {
      message = error.what();
    }
    const auto [name, overrides] = proposed(message);
    ASSERT_FALSE(overrides.empty()) << message;
    const Recipe recipe = load_recipe(name, overrides);
    EXPECT_TRUE(fit_of(set, recipe.model).whole()) << message << "\n" << fit_of(set, recipe.model).sentence();
    EXPECT_THAT(message, HasSubstr("Shapes do not tell")) << message;
    EXPECT_THAT(message, HasSubstr("model.rope.dims")) << message;
  }
}

// Models of their own that no sample is of: each lacks or adds something beside its nearest recipe.
TEST(Names, WhatIsProposedTakesModelsWithAndWithoutParts) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases{
      {"pr1105", {"model.dim=384", "model.heads=6", "model.kv_heads=3", "model.layers=9", "model.value_embed.layers=[6,7,8]"}},
      {"pr1105", {"model.layers=7", "model.value_embed.dim=0", "model.value_embed.layers=[]", "model.bigram.rows=0"}},
      {"pr1105", {"model.layers=5", "model.value_embed.layers=[4]", "model.smear=\"none\"", "model.skip=\"none\""}},
      {"best", {"model.layers=8", "model.loop.start=2", "model.loop.end=3", "model.lanes.start=5"}},
      {"best", {"model.layers=9", "model.loop.start=0", "model.loop.end=0", "model.loop.count=0", "model.lanes.start=-1"}},
      {"pr1584", {"model.layers=12", "model.loop.start=4", "model.loop.end=5", "model.loop.count=3", "model.lanes.start=9"}},
      {"smoke", {"model.dim=48", "model.layers=3", "model.lanes.start=2", "model.value_embed.layers=[1]"}}};
  for (const auto& [base, changes] : cases) {
    SCOPED_TRACE(testing::PrintToString(changes));
    const Recipe made = load_recipe(base, changes);
    const WeightSet set = shapes_of(made.model, base, NameStyle::published);
    std::string message;
    try {
      guess_recipe(set, {});
    } catch (const InputError& error) {
      message = error.what();
    }
    const auto [name, overrides] = proposed(message);
    ASSERT_FALSE(overrides.empty()) << message;
    EXPECT_TRUE(fit_of(set, load_recipe(name, overrides).model).whole())
        << message << "\n"
        << fit_of(set, load_recipe(name, overrides).model).sentence();
  }
}

// Sizes that tell which letter they are.
std::string letters(const Extents& shape, const ModelRecipe& m) {
  const std::map<int64_t, std::string> names{
      {m.vocab, "V"},           {m.dim, "D"},        {m.layers, "L"},        {2 * m.layers, "2L"},  {m.heads, "H"},
      {m.kv_dim(), "K·E"},      {m.mlp_hidden, "F"}, {m.bigram.rows, "V_b"}, {m.bigram.dim, "d_b"}, {m.value_embed.dim, "d_v"},
      {skip_count(m), "n_skip"}};
  std::string text;
  for (const int64_t extent : shape)
    text += (text.empty() ? "" : ", ") + (names.contains(extent) ? names.at(extent) : std::to_string(extent));
  return "[" + text + "]";
}

ModelRecipe with_everything(SmearKind smear) {
  ModelRecipe m;
  m.vocab = 1000, m.dim = 320, m.layers = 14, m.heads = 10, m.kv_heads = 5, m.mlp_hidden = 900;
  m.smear = smear, m.skip = SkipKind::gated, m.attn_gate = AttnGateKind::sparse;
  m.bigram.rows = 3000, m.bigram.dim = 112;
  m.value_embed.dim = 128, m.value_embed.layers = {3, 5, 6};
  m.lanes.start = 8;
  return m;
}

std::string joined_names(std::string_view first, std::string_view second) {
  return "`" + std::string(first) + "`" + (second.empty() ? "" : ", `" + std::string(second) + "`");
}

std::string table_of_names() {
  std::string text = "| Fairway | shape | published | shape | dtype there | per layer |\n|---|---|---|---|---|---|\n";
  for (size_t i = 0; i < kParamCount; ++i) {
    const auto id = static_cast<ParamId>(i);
    const PublishedRow* row = published_row(id);
    for (const SmearKind smear : {SmearKind::constant, SmearKind::input}) {
      const ModelRecipe m = with_everything(smear);
      const auto shape = row_of(id).shape(m);
      if (!shape || (smear == SmearKind::input && row_of(id).shape(with_everything(SmearKind::constant)))) continue;
      Extents there = *shape;
      std::string name = "none: keeps its name";
      if (row != nullptr) {
        const ParamInfo info{.name = fairway::name_of(id), .shape = *shape, .role = row_of(id).role, .id = id};
        there = tensor_places(info, m.layers, NameStyle::published)[0].shape;
        name = "`" + std::string(row->name) + "`";
      }
      std::string here = letters(*shape, m);
      if (id == ParamId::value_embed_layer_scale) here = "[n_ve]";
      text += fmt::format(
          "| `{}` | {} | {} | {} | {} | {} |\n", fairway::name_of(id), here, name, letters(there, m),
          row != nullptr && row->table ? "bf16" : "f32",
          row == nullptr || row->layer_name.empty() ? "the same" : joined_names(row->layer_name, row->later_layer_name));
    }
  }
  return text;
}

TEST(InterchangeDoc, TableEqualsTheDeclaredNames) {
  const std::string path = FAIRWAY_SOURCE_DIR "/docs/interchange.md",
                    begin = "<!-- names: written from src/interchange/published_names.cpp -->\n",
                    end = "<!-- end of names -->\n";
  std::string page = read_file(path);
  const size_t from = page.find(begin), to = page.find(end);
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(to, std::string::npos);
  if (std::getenv("FAIRWAY_REWRITE_DOCS") != nullptr) {
    page.replace(from + begin.size(), to - from - begin.size(), table_of_names());
    std::ofstream(path, std::ios::binary) << page;
    return;
  }
  EXPECT_EQ(page.substr(from + begin.size(), to - from - begin.size()), table_of_names())
      << "run FAIRWAY_REWRITE_DOCS=1 build/bin/interchange_test --gtest_filter='InterchangeDoc.*'";
}

// PyTorch itself loads what is exported under published names, and finds the values that it once saved.
constexpr const char* kScript = R"py(import sys
try:
    import torch
except Exception:
    sys.exit(77)
pt, st, sample = sys.argv[2:5]
want = torch.load(sample, map_location="cpu", weights_only=True)
def check(have, what):
    assert set(have) == set(want), (what, set(have) ^ set(want))
    for name, tensor in want.items():
        assert have[name].shape == tensor.shape and have[name].dtype == torch.float32, (what, name)
        assert torch.equal(have[name], tensor.float()), (what, name)
have = torch.load(pt, weights_only=True)
check(have, "pt")
model = torch.nn.Module()
for name, tensor in want.items():
    place = model
    *parts, last = name.split(".")
    for part in parts:
        if not hasattr(place, part):
            place.add_module(part, torch.nn.Module())
        place = getattr(place, part)
    place.register_parameter(last, torch.nn.Parameter(torch.zeros_like(tensor)))
model.load_state_dict(have, strict=True)
check({name: tensor for name, tensor in model.state_dict().items()}, "module")
try:
    from safetensors.torch import load_file
    check(load_file(st), "safetensors")
    print("loaded", len(want), "tensors from .pt and .safetensors with torch", torch.__version__)
except ImportError:
    print("loaded", len(want), "tensors from .pt with torch", torch.__version__, "(no safetensors package)")
)py";

TEST(Torch, LoadsWhatIsExported) {
  const ScratchFolder scratch;
  const char* chosen = std::getenv("FAIRWAY_TORCH_PYTHON");
  put_file(scratch / "load.py", kScript);
  for (const char* sample : {"pr1105_tiny.pt", "best_tiny.pt"}) {
    const std::string run = scratch / (std::string(sample) + "_run"), pt = run + "/w.pt", safetensors = run + "/w.safetensors";
    run_json({"import", sample_path(sample), "--recipe", golden_recipe_file(golden_of(sample), scratch.path()), "--out", run});
    for (const std::string& out : {pt, safetensors}) run_json({"export", run, "--names", "published", "--out", out});
    const Outcome outcome =
        Child({pt, safetensors, sample_path(sample)}, {chosen == nullptr ? "python3" : chosen, scratch / "load.py"}).wait();
    if (outcome.status == 77 || outcome.status == 127)
      GTEST_SKIP() << "Python or PyTorch is not here (FAIRWAY_TORCH_PYTHON names one that has it)";
    EXPECT_EQ(outcome.status, 0) << outcome.text();
    std::printf("%s", outcome.out.c_str());
  }
}

}  // namespace
}  // namespace fairway::interchange
