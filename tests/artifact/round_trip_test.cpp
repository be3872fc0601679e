// An artifact gives back the quantized model bit for bit, whichever codec; its ledger accounts for every byte.
#include <gtest/gtest.h>

#include <algorithm>

#include "artifact/file_parts.h"
#include "base/error.h"
#include "base/file.h"
#include "base/half.h"
#include "base/sha256.h"
#include "quant/quantize_model.h"
#include "quant/step_factors.h"

namespace fairway {
namespace {

TEST(Artifact, GivesTheModelBackForEveryCodec) {
  const QuantizedModel model = made_model(tiny_architecture(), 1);
  for (const CodecChoice codec : {CodecChoice::rans, CodecChoice::brotli, CodecChoice::lzma, CodecChoice::best}) {
    Ledger ledger;
    const std::string bytes = write_artifact(model, {codec}, &ledger);
    EXPECT_EQ(bytes, write_artifact(model, {codec}));
    EXPECT_EQ(read_artifact(bytes, "test"), model);
    EXPECT_EQ(ledger.total(), bytes.size());
    EXPECT_GT(ledger.weights, 0);
    for (const LedgerLine& line : ledger.lines) EXPECT_GT(line.bytes, 0U) << line.what;
  }
}

// Coded weights serve every file of the same integers; of others they are refused.
TEST(Artifact, WeightsAreCodedOnceForFilesThatDifferInOtherValues) {
  QuantizedModel model = made_model(tiny_architecture(), 1);
  const CodedWeights weights = code_weights(model);
  EXPECT_EQ(write_artifact(model, weights, {}), write_artifact(model));
  const auto halves = std::find_if(model.tensors.begin(), model.tensors.end(),
                                   [](const QuantizedTensor& t) { return t.coding == TensorCoding::half; });
  ASSERT_NE(halves, model.tensors.end());
  for (uint16_t& half : halves->halves) half = to_half(0.25F);
  EXPECT_EQ(write_artifact(model, weights, {}), write_artifact(model));
  const auto integers = std::find_if(model.tensors.begin(), model.tensors.end(),
                                     [](const QuantizedTensor& t) { return t.coding == TensorCoding::integer_rows; });
  integers->q[0] = static_cast<int8_t>(integers->q[0] > 0 ? integers->q[0] - 1 : integers->q[0] + 1);
  EXPECT_THROW(write_artifact(model, weights, {}), WorkError);
}

TEST(Artifact, BestIsNeverLarger) {
  const QuantizedModel model = made_model(tiny_architecture(), 2);
  const size_t best = write_artifact(model, {CodecChoice::best}).size();
  for (const CodecChoice codec : {CodecChoice::rans, CodecChoice::brotli, CodecChoice::lzma})
    EXPECT_LE(best, write_artifact(model, {codec}).size());
}

// The allocator gives all rows of a tensor one step.
TEST(Artifact, StepsThatRowsShareTakeNextToNothing) {
  QuantizedModel model = made_model(tiny_architecture(), 3);
  const auto scale_bytes = [&] {
    Ledger ledger;
    EXPECT_EQ(read_artifact(write_artifact(model, {}, &ledger), "test"), model);
    for (const LedgerLine& line : ledger.lines)
      if (line.what == "row scales") return line.bytes;
    return uint64_t{0};
  };
  const uint64_t apart = scale_bytes();
  size_t shared = 0;
  for (QuantizedTensor& tensor : model.tensors)
    if (!tensor.scale.empty())
      std::fill(tensor.scale.begin(), tensor.scale.end(), to_half(0.01F / static_cast<float>(++shared)));
  EXPECT_GT(apart, 8 * shared);
  EXPECT_LT(scale_bytes(), 8 * shared);
}

TEST(Artifact, HoldsEveryBuiltInArchitecture) {
  for (const BuiltinRecipe& builtin : builtin_recipes()) {
    const ModelRecipe model = load_recipe(builtin.name).model;
    EXPECT_EQ(parse_architecture(architecture_text(model), "test: "), model) << builtin.name;
  }
  ModelRecipe smoke = load_recipe("smoke").model;
  const QuantizedModel model = made_model(smoke, 3);
  EXPECT_EQ(read_artifact(write_artifact(model), "test"), model);
}

TEST(Artifact, SaysThatDocumentsWerePacked) {
  QuantizedModel model = made_model(tiny_architecture(), 6);
  const size_t across = write_artifact(model).size();
  model.segment = 2048;
  const std::string bytes = write_artifact(model);
  EXPECT_EQ(bytes.size(), across + 2);
  EXPECT_EQ(read_artifact(bytes, "test"), model);
}

TEST(Artifact, MayCarryItsTokenizer) {
  QuantizedModel model = made_model(tiny_architecture(), 6);
  const size_t alone = write_artifact(model).size();
  for (int piece = 0; piece < 500; ++piece) model.tokenizer_model += "piece " + std::to_string(piece) + "\n";
  Ledger ledger;
  const std::string bytes = write_artifact(model, {}, &ledger);
  EXPECT_EQ(read_artifact(bytes, "test"), model);
  EXPECT_EQ(read_artifact(parts_of(model).file(), "test").tokenizer_model, model.tokenizer_model);
  EXPECT_EQ(bytes.size(), alone + carried_bytes(model.tokenizer_model));
  EXPECT_LT(carried_bytes(model.tokenizer_model), model.tokenizer_model.size());
  EXPECT_TRUE(std::any_of(ledger.lines.begin(), ledger.lines.end(), [&](const LedgerLine& line) {
    return line.what == "tokenizer" && line.bytes == carried_bytes(model.tokenizer_model);
  }));
  QuantizedModel nameless = model;
  nameless.tokenizer.clear();
  EXPECT_THROW(write_artifact(nameless), InputError);
  model.tokenizer_model.assign((size_t{1} << 24) + 1, 'x');
  EXPECT_THROW(write_artifact(model), InputError);
}

TEST(Artifact, HoldsCorrectionsOfOtherGroups) {
  for (const int64_t group : {8, 32, 65536}) {
    QuantizedModel model = made_model(tiny_architecture(), 6);
    const auto corrected =
        std::find_if(model.tensors.begin(), model.tensors.end(), [](const auto& t) { return t.correction.rank > 0; });
    ASSERT_NE(corrected, model.tensors.end());
    corrected->correction.group = group;
    corrected->correction.b_scale.assign(static_cast<size_t>(corrected->correction.groups(corrected->cols)), to_half(0.0625F));
    EXPECT_EQ(read_artifact(write_artifact(model), "test"), model) << group;
    corrected->correction.b_scale.push_back(0);
    EXPECT_THROW(write_artifact(model), InputError);
  }
}

TEST(Artifact, WholeAndUncodedFormsReadAlike) {
  QuantizedModel model = made_model(tiny_architecture(), 4);
  FileParts parts = parts_of(model);
  QuantizedModel read = read_artifact(parts.file(), "test");
  read.tokenizer = model.tokenizer, read.recipe_hash = model.recipe_hash, read.train_length = model.train_length;
  EXPECT_EQ(read, model);
}

TEST(Artifact, RefusesModelsItCannotStore) {
  const auto refuses = [](auto change) {
    QuantizedModel model = made_model(tiny_architecture(), 5);
    change(model);
    EXPECT_THROW(write_artifact(model), InputError);
  };
  refuses([](QuantizedModel& m) { m.tensors.pop_back(); });
  refuses([](QuantizedModel& m) { m.tensors[0].q.pop_back(); });
  refuses([](QuantizedModel& m) { m.tensors[1].q[3] = 31, m.tensors[1].bits = 4; });
  refuses([](QuantizedModel& m) { m.tensors[0].scale[0] = 0x7C00; });
  refuses([](QuantizedModel& m) { m.tensors[0].columns.resize(3); });
  refuses([](QuantizedModel& m) { m.tensors[0].columns.assign(16, 99); });
  refuses([](QuantizedModel& m) { m.tokenizer = "abc"; });
  refuses([](QuantizedModel& m) { m.tensors[0].rows += 1; });
}

TEST(Artifact, EstimateIsNearTheFile) {
  ModelRecipe architecture = load_recipe("demo").model;
  const QuantizedModel model = made_model(architecture, 6);
  const auto actual = static_cast<double>(write_artifact(model).size());
  const auto estimate = static_cast<double>(estimate_size(model).total());
  EXPECT_TRUE(std::abs(estimate - actual) <= 0.01 * actual) << estimate << " for " << actual;
}

TEST(Artifact, DequantizesIntoTheModelsParameters) {
  const QuantizedModel model = made_model(tiny_architecture(), 7);
  ParamStore weights(parameter_table(model.model), ParamStore::Gradients::none);
  dequantize(model, weights);
  const QuantizedTensor& token = model.tensors[0];
  const float first = static_cast<float>(token.q[5]) * from_half(token.scale[0]);
  EXPECT_EQ(weights.bank(ParamId::embed_token).value.as<float>()[5], first);
  const QuantizedTensor& down = *std::find_if(model.tensors.begin(), model.tensors.end(),
                                              [](const QuantizedTensor& t) { return t.bank == ParamId::down; });
  const auto product = static_cast<double>(static_cast<float>(down.q[5]) * from_half(down.scale[0]));
  EXPECT_EQ(weights.bank(ParamId::down).value.as<float>()[5],
            static_cast<float>(product * static_cast<double>(step_factor(down.columns[5]))));
}

// Files written by earlier releases: they must read forever, to these weights.
TEST(Artifact, ReadsTheKeptFiles) {
  const std::filesystem::path folder = FAIRWAY_SOURCE_DIR "/tests/artifact";
  for (const std::string name : {"version2", "version3", "version3b", "version3c", "version3d", "version4", "version4columns",
                                 "version4trellis", "version4tokenizer"}) {
    const QuantizedModel model = load_artifact(folder / (name + ".fwy"));
    std::string values;
    for (const QuantizedTensor& tensor : model.tensors) {
      std::vector<float> weights(static_cast<size_t>(tensor.count()));
      dequantize(tensor, weights);
      values.append(reinterpret_cast<const char*>(weights.data()), 4 * weights.size());
    }
    EXPECT_EQ(sha256_hex(values), read_file(folder / (name + ".sha256")).substr(0, 64)) << name;
    EXPECT_EQ(model.model, tiny_architecture());
    EXPECT_TRUE(model.looped);
    EXPECT_EQ(model.train_length, 256);
    EXPECT_EQ(model.tokenizer, std::string(64, 'a'));
  }
}

// The newest kept files are what is written now. What decoders must do otherwise needs a version of its own, other choices of
// the encoder (3b: tensors choose their plans together; 3c: values that repeat are matched; 3d: one more key of [model]) a
// file; it lies ready then.
TEST(Artifact, WritesTheKeptBytes) {
  const std::filesystem::path folder = FAIRWAY_SOURCE_DIR "/tests/artifact";
  const auto expect_kept = [&](const std::string& name, const QuantizedModel& model) {
    const std::string written = write_artifact(model);
    const std::filesystem::path kept = folder / (name + ".fwy"),
                                other = std::filesystem::path(testing::TempDir()) / (name + ".fwy");
    save_artifact(other, written);
    EXPECT_TRUE(std::filesystem::exists(kept) && read_file(kept) == written) << "what is written now lies in " << other;
  };
  expect_kept("version4", load_artifact(folder / "version2.fwy"));
  expect_kept("version4columns", made_model(tiny_architecture(), 9));
  expect_kept("version4trellis", made_on_trellis(tiny_architecture(), 9));
  QuantizedModel carrying = made_model(tiny_architecture(), 9);
  for (int piece = 0; piece < 60; ++piece) carrying.tokenizer_model += "piece " + std::to_string(piece) + "\n";
  expect_kept("version4tokenizer", carrying);
}

}  // namespace
}  // namespace fairway
