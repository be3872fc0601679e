// What the C library tells of an artifact is what the artifact has.
#include <nlohmann/json.hpp>

#include "library/made_artifact.h"
#include "quant/quantize_model.h"

namespace fairway {
namespace {

std::vector<float> floats_of(fairway_artifact* artifact, size_t index, size_t count) {
  std::vector<float> values(count);
  EXPECT_EQ(fairway_floats(artifact, index, values.data(), count), FAIRWAY_OK) << fairway_error();
  return values;
}

TEST(CLibrary, GivesEveryTensor) {
  const QuantizedModel& model = made_artifact().model;
  const Handle artifact = open_bytes(made_artifact().bytes, 2);
  size_t count = 0;
  ASSERT_EQ(fairway_tensor_count(artifact.get(), &count), FAIRWAY_OK);
  ASSERT_EQ(count, model.tensors.size());
  for (size_t i = 0; i < count; ++i) {
    const QuantizedTensor& t = model.tensors[i];
    fairway_tensor told;
    ASSERT_EQ(fairway_tensor_at(artifact.get(), i, &told), FAIRWAY_OK) << fairway_error();
    EXPECT_EQ(told.name, tensor_name(t.bank, t.slice));
    EXPECT_EQ(told.rows, t.rows);
    EXPECT_EQ(told.cols, t.cols);
    int64_t product = 1;
    for (int d = 0; d < told.dimensions; ++d) product *= told.shape[d];
    EXPECT_EQ(product, told.count) << told.name;
    size_t index = count;
    EXPECT_EQ(fairway_tensor_index(artifact.get(), told.name, &index), FAIRWAY_OK);
    EXPECT_EQ(index, i);
    std::vector<float> want(static_cast<size_t>(t.count()));
    dequantize(t, want);
    EXPECT_EQ(floats_of(artifact.get(), i, want.size()), want) << told.name;
  }
}

TEST(CLibrary, GivesIntegersAndTheirSteps) {
  const QuantizedModel& model = made_artifact().model;
  const Handle artifact = open_bytes(made_artifact().bytes);
  size_t of_integers = 0, by_column = 0;
  for (size_t i = 0; i < model.tensors.size(); ++i) {
    const QuantizedTensor& t = model.tensors[i];
    std::vector<int8_t> q(static_cast<size_t>(t.count()));
    std::vector<float> rows(static_cast<size_t>(t.rows)), cols(static_cast<size_t>(t.cols));
    const fairway_status status = fairway_integers(artifact.get(), i, q.data(), rows.data(), cols.data());
    if (t.coding != TensorCoding::integer_rows) {
      EXPECT_EQ(status, FAIRWAY_BAD_INPUT);
      continue;
    }
    ++of_integers, by_column += t.columns.empty() ? 0 : 1;
    EXPECT_EQ(q, t.q);
    if (t.correction.rank > 0) continue;
    const std::vector<float> values = floats_of(artifact.get(), i, q.size());
    for (size_t k = 0; k < q.size(); ++k)
      ASSERT_FLOAT_EQ(static_cast<float>(q[k]) * rows[k / cols.size()] * cols[k % cols.size()], values[k]) << i << " " << k;
  }
  EXPECT_GT(of_integers, 3U);
  EXPECT_GT(by_column, 0U);
}

TEST(CLibrary, DescribesTheArtifact) {
  const Handle artifact = open_bytes(made_artifact().bytes);
  const char* text = nullptr;
  ASSERT_EQ(fairway_describe(artifact.get(), &text), FAIRWAY_OK);
  const auto told = nlohmann::json::parse(text);
  EXPECT_EQ(told["bytes"], made_artifact().bytes.size());
  EXPECT_EQ(told["weights"], parameter_count(made_artifact().model.model));
  EXPECT_EQ(told["train_length"], 256);
  EXPECT_EQ(told["looped"], true);
  EXPECT_EQ(told["carries_tokenizer"], true);
  EXPECT_EQ(told["tokenizer"], made_artifact().model.tokenizer);
  EXPECT_EQ(told["model"]["dim"], 16);
  EXPECT_STREQ(fairway_version(), "0.1.0");
}

}  // namespace
}  // namespace fairway
