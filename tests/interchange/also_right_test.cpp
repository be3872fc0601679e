// Files that look unusual and are right: they give the same weights as the sample they were made from.
#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "app/program.h"
#include "base/half.h"
#include "data/scratch_folder.h"
#include "interchange/decompress.h"
#include "interchange/fit.h"
#include "interchange/little_endian.h"
#include "interchange/maker.h"
#include "interchange/samples.h"
#include "interchange/torch_writer.h"

namespace fairway::interchange {
namespace {

const std::string kSample = "pr1105_tiny.pt", kGolden = "pr1105_tiny";

void expect_golden(const WeightSet& set, const std::string& what) {
  const Recipe recipe = golden_recipe(kGolden);
  const Fit fit = fit_of(set, recipe.model);
  ASSERT_TRUE(fit.whole()) << what << ": " << fit.sentence();
  const Safetensors golden = golden_file(kGolden);
  const Loaded loaded = load(set, recipe, false);
  for (const ParamBank& bank : loaded.params->banks()) {
    const Tensor want = golden.get("param." + bank.info.name);
    EXPECT_EQ(std::memcmp(bank.value.data, want.data, want.spec.bytes()), 0) << what << ": " << bank.info.name;
  }
}

TEST(AlsoRight, EntriesInAnyOrderUnderAnyName) {
  const ZipParts good(sample_bytes(kSample));
  ZipParts bare = good, more = good, elsewhere = good;
  bare.entries.erase("byteorder");
  expect_golden(read_weight_set(bare.file(), "a"), "without a byte order");
  more.entries[".format_version"] = "1";
  more.entries["extra/notes.txt"] = "hello";
  expect_golden(read_weight_set(more.file(), "a"), "with further entries");
  expect_golden(read_weight_set(good.file("another name"), "renamed.bin"), "renamed");
  for (size_t at = 0; (at = elsewhere.pickle().find("cuda:0", at)) != std::string::npos;)
    elsewhere.pickle().replace(at, 6, "cuda:3");
  expect_golden(read_weight_set(elsewhere.file(), "a"), "of another device");
  ZipWriter backwards;
  for (auto entry = good.entries.rbegin(); entry != good.entries.rend(); ++entry)
    backwards.add("x/" + entry->first, entry->second);
  expect_golden(read_weight_set(std::move(backwards).finish(), "a"), "in another order");
}

// kv_bank lies transposed in its storage; two names share one storage.
TEST(AlsoRight, StridesAndSharedStorages) {
  const Dict good(sample_bytes(kSample));
  TorchWriter writer("strided");
  writer.begin_dict();
  writer.text("a");
  const std::vector<float> kv = values_of(turned(good.tensors.at("kv_bank")));
  std::vector<float> scales = values_of(good.tensors.at("blocks.0.attn_scale"));
  const std::vector<float> second = values_of(good.tensors.at("blocks.0.mlp_scale"));
  scales.insert(scales.end(), second.begin(), second.end());
  const auto bytes_in = [](const std::vector<float>& v) {
    return std::string_view(reinterpret_cast<const char*>(v.data()), v.size() * sizeof(float));
  };
  writer.tensor(ElementType::f32, {10, 32, 16}, bytes_in(kv));
  writer.text("b");
  writer.tensor(ElementType::f32, {64}, bytes_in(scales));
  writer.text("kv_bank");
  writer.view(0, {10, 16, 32}, {512, 1, 16}, 0);
  writer.text("blocks.0.attn_scale");
  writer.view(1, {32}, {1}, 0);
  writer.text("blocks.0.mlp_scale");
  writer.view(1, {32}, {1}, 32);
  for (const auto& [name, tensor] : good.tensors) {
    if (name == "kv_bank" || name == "blocks.0.attn_scale" || name == "blocks.0.mlp_scale") continue;
    writer.text(name);
    writer.tensor(ElementType::f32, tensor.shape, bytes_in(values_of(tensor)));
  }
  writer.end_dict();
  WeightSet set = read_weight_set(std::move(writer).finish(), "strided.pt");
  set.weights.erase("a");
  set.weights.erase("b");
  expect_golden(set, "strided");
}

TEST(AlsoRight, SafetensorsUnderEitherNamesAndInEveryType) {
  const WeightSet good = sample_set(kSample);
  for (const char* type : {"F32", "F16", "BF16"}) {
    std::string header = "{", data;
    const size_t width = std::strcmp(type, "F32") == 0 ? 4 : 2;
    for (const auto& [name, weight] : good.weights) {
      const size_t begin = data.size();
      for (const float value : weight.values()) {
        if (width == 4) put_number(data, value);
        if (std::strcmp(type, "F16") == 0) put_number(data, to_half(value));
        if (std::strcmp(type, "BF16") == 0) put_number(data, static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16));
      }
      header += (header.size() > 1 ? ",\"" : "\"") + name + "\":{\"dtype\":\"" + type +
                "\",\"shape\":" + text_of(weight.shape) + ",\"data_offsets\":[" + std::to_string(begin) + "," +
                std::to_string(data.size()) + "]}";
    }
    std::string file;
    put_number(file, static_cast<uint64_t>(header.size() + 1));
    const WeightSet set = read_weight_set(file + header + "}" + data, "w.safetensors");
    if (width == 4) expect_golden(set, type);
    EXPECT_TRUE(fit_of(set, golden_recipe(kGolden).model).whole()) << type;
    const std::vector<float> have = set.weights.at("qo_bank").values(), want = good.weights.at("qo_bank").values();
    ASSERT_EQ(have.size(), want.size());
    for (size_t i = 0; i < have.size(); ++i)
      EXPECT_NEAR(have[i], want[i], std::abs(want[i]) / (width == 4 ? 1e9 : 100)) << type;
  }
}

// Brotli stands for lrzip.
TEST(AlsoRight, ContainersHoldTheSameWeights) {
  const Dict artifact(read_weight_bytes("best_tiny.brotli.ptz"));
  const WeightSet want = read_weight_set(artifact.file(), "plain.ptz");
  const auto by_brotli = [](std::string_view coded, uint64_t bytes, const std::string& where) {
    return decompress_brotli(coded, bytes + 1, where);
  };
  const WeightSet grouped = read_weight_set(first_group_container(artifact, brotli), "grouped.ptz", by_brotli);
  EXPECT_EQ(grouped.format, "published artifact (PGRP-1)");
  for (const std::string& file : {zlib(artifact.file()), xz(shuffled(artifact.file()))}) {
    const WeightSet other = read_weight_set(file, "other.ptz");
    EXPECT_EQ(other.weights.size(), want.weights.size());
  }
  ASSERT_EQ(grouped.weights.size(), want.weights.size());
  for (const auto& [name, weight] : want.weights) {
    EXPECT_EQ(grouped.weights.at(name).shape, weight.shape) << name;
    EXPECT_EQ(grouped.weights.at(name).values(), weight.values()) << name;
  }
}

TEST(AlsoRight, WhatIsNotFiniteIsToldByName) {
  const ScratchFolder scratch;
  Dict dict(sample_bytes(kSample));
  dict.tensors["kv_bank"] = changed_value(dict.tensors["kv_bank"], 7, std::numeric_limits<float>::quiet_NaN());
  put_file(scratch / "nan.pt", dict.file());
  const Outcome outcome = run_program(
      {"import", scratch / "nan.pt", "--recipe", golden_recipe_file(kGolden, scratch.path()), "--out", scratch / "run"});
  EXPECT_EQ(outcome.status, 0) << outcome.text();
  EXPECT_THAT(outcome.err,
              testing::AllOf(testing::HasSubstr("warning"), testing::HasSubstr("kv_bank: value 7 is nan, 1 of 5120")));
}

TEST(AlsoRight, ProjectionsThatAModelDoesWithoutAreIdentities) {
  WeightSet set = sample_set(kSample);
  Recipe recipe = golden_recipe(kGolden);
  recipe.model.bigram.dim = recipe.model.dim;
  const auto wide = [] { return std::vector<float>(64 * 32, 0.25F); };
  set.weights["bigram.embed.weight"] = {{64, 32}, "f32", wide};
  set.weights.erase("bigram.proj.weight");
  const Fit fit = fit_of(set, recipe.model);
  EXPECT_TRUE(fit.whole()) << fit.sentence();
  EXPECT_EQ(fit.filled, std::vector<std::string>{"bigram.proj"});
  const Loaded loaded = load(set, recipe, false);
  const auto* proj = loaded.params->bank(ParamId::bigram_proj).value.as<float>();
  for (int i = 0; i < 32 * 32; ++i) EXPECT_EQ(proj[i], i / 32 == i % 32 ? 1.0F : 0.0F);
}

}  // namespace
}  // namespace fairway::interchange
