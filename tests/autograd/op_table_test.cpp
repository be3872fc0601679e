// The table of where a program's time goes counts what an op must do: products, and every tensor's bytes once.
#include "backends/op_table.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "autograd/tape.h"
#include "backends/backends.h"

namespace fairway {
namespace {

class OpTable : public testing::Test {
 protected:
  Tensor make(Shape shape) {
    memory_.push_back(std::make_unique<std::vector<float>>(static_cast<size_t>(shape.numel()), 1.0f));
    return make_view(memory_.back()->data(), {shape, DType::f32});
  }
  Var param(Shape shape) {
    return tape_.param({static_cast<int32_t>(memory_.size())}, "p" + std::to_string(memory_.size()), make(shape), make(shape));
  }

  Tape tape_;
  std::vector<std::unique_ptr<std::vector<float>>> memory_;
  Queue queue_{1};
  std::unique_ptr<Executor> executor_ = make_ref_executor(queue_);
};

// y (3, 4) = h (3, 2)·Wᵀ.
TEST_F(OpTable, CountsProductsAndBytes) {
  const Var y = tape_.one(ProjectResidual{}, {Var{}, param({3, 2}), param({4, 2}), param({4})});
  const auto session = executor_->open(std::move(tape_).finish(y, tape_.input("d y", make({3, 4}))));
  const std::vector<OpLine> lines = op_table(*executor_, *session, 2);
  ASSERT_EQ(lines.size(), 2U);
  for (const OpLine& line : lines) {
    const bool backward = line.name == "project_residual'";
    EXPECT_TRUE(backward || line.name == "project_residual");
    EXPECT_EQ(line.calls, 1);
    EXPECT_GT(line.seconds, 0);
    EXPECT_EQ(line.flops, (backward ? 2 : 1) * 2 * 3 * 4 * 2);
    const double operands = 4 * (3 * 2 + 4 * 2 + 4), result = 4 * 3 * 4;
    EXPECT_EQ(line.bytes, backward ? operands + result + 2 * operands : operands + result)
        << "gradients of parameters are added to: read and written";
    EXPECT_EQ(line.library_seconds, 0) << "there is no maker's library on the CPU";
  }
}

TEST_F(OpTable, WhatPassesIsNotRead) {
  const Var y = tape_.one(Add{}, {param({5, 1}), param({5, 1})});
  const auto session = executor_->open(std::move(tape_).finish(y, tape_.input("d y", make({5, 1}))));
  for (const OpLine& line : op_table(*executor_, *session, 1))
    EXPECT_EQ(line.bytes, line.name == "add" ? 3 * 20 : 20 + 2 * 2 * 20) << line.name;
}

// Documents of two tokens in a row of eight are a quarter of its pairs.
TEST_F(OpTable, CountsAttentionInsideDocuments) {
  std::vector<int32_t> starts{0, 0, 2, 2, 4, 4, 6, 6};
  const Var start = tape_.input("segment_start", make_view(starts.data(), {{8}, DType::i32}));
  tape_.one(Attention{.row_length = 8, .heads = 1, .kv_heads = 1},
            {param({8, 4}), param({8, 4}), param({8, 4}), start, Var{}, Var{}});
  const auto session = executor_->open(std::move(tape_).finish());
  EXPECT_EQ(op_table(*executor_, *session, 1).front().flops, 2 * 8 * 8 * 4 / 4.0);
}

TEST(Peaks, TheLargerOfArithmeticAndTrafficDecides) {
  const OpLine line{.name = "op", .calls = 1, .seconds = 2, .flops = 100, .bytes = 30, .library_seconds = 3};
  EXPECT_DOUBLE_EQ((Peaks{200, 0}.share_of(line)), 0.25);
  EXPECT_DOUBLE_EQ((Peaks{200, 30}.share_of(line)), 0.5);
  EXPECT_DOUBLE_EQ((Peaks{}.share_of(line)), 0);
  const auto json = nlohmann::json::parse(op_table_json({line, line}, {200, 30}));
  ASSERT_EQ(json.size(), 2U);
  EXPECT_DOUBLE_EQ(json[1]["library_ratio"].get<double>(), 1.5);
  EXPECT_DOUBLE_EQ(json[0]["gb_per_s"].get<double>(), 15e-9);
  const auto timeless = nlohmann::json::parse(op_table_json({{.name = "op", .calls = 1, .flops = 1, .bytes = 1}}, {200, 30}));
  EXPECT_EQ(timeless[0]["gflops"], 0) << "a clock that has not moved tells no rate";
  const std::string table = print_op_table({line}, 8, {200, 30});
  EXPECT_NE(table.find("25.0%"), std::string::npos) << "its share of eight seconds\n" << table;
  EXPECT_NE(table.find("50.0%"), std::string::npos) << "of light\n" << table;
  EXPECT_NE(table.find("1.50x"), std::string::npos) << table;
}

}  // namespace
}  // namespace fairway
