// compare() finds two right backends equal on every stage of a recipe, and the first call that is wrong in a broken one.
#include "autograd/compare.h"

#include <gmock/gmock.h>

#include <cmath>

#include "autograd/host_executor.h"
#include "backends/backends.h"
#include "bench/step_bench.h"

namespace fairway {
namespace {

// A backend that is right but for one result: the `nth` time that op runs, one number changes.
class Broken : public HostExecutor {
 public:
  Broken(Queue& queue, std::string op, bool backward, int nth, float error)
      : HostExecutor(queue),
        inner_(make_cpu_executor(queue)),
        op_(std::move(op)),
        backward_(backward),
        nth_(nth),
        error_(error) {}
  Backend backend() const override { return Backend::cpu; }
  void run_call(const BoundCall& bound) override {
    inner_->run_call(bound);
    if (op_name(bound.call->op) != op_ || bound.call->backward != backward_ || nth_-- != 0) return;
    const Tensor& target = backward_ ? bound.din[0] : bound.out[0];
    target.as<float>()[target.numel() / 2] += error_;
  }

 private:
  std::unique_ptr<Executor> inner_;
  std::string op_;
  bool backward_;
  int nth_;
  float error_;
};

class Compare : public testing::Test {
 protected:
  CompareResult compare(ModelStage stage, Executor& candidate) {
    return bench::compare_recipe(recipe_, stage, *ref_, candidate, 1e-9, queue_.pool());
  }
  const Recipe recipe_ = bench::small_recipe(load_recipe("smoke"), 2, 24);
  Queue queue_{2};
  std::unique_ptr<Executor> ref_ = make_ref_executor(queue_), cpu_ = make_cpu_executor(queue_);
};

TEST_F(Compare, BackendsAgreeOnEveryStage) {
  for (ModelStage stage : {ModelStage{}, ModelStage{.looped = true}, ModelStage{.fake_quant = true}, ModelStage{true, true}}) {
    const CompareResult result = compare(stage, *cpu_);
    EXPECT_FALSE(result.first) << result.first->op << " of " << result.first->label << ", " << result.first->tensor << ": "
                               << result.first->error;
    EXPECT_GT(result.calls, 60U);
    EXPECT_GT(result.worst, 0);  // they are not the same backend
  }
}

TEST_F(Compare, PackedDocumentsAgreeToo) {
  Recipe packed = recipe_;
  packed.data.sampler = SamplerKind::docpack;
  EXPECT_FALSE(bench::compare_recipe(packed, {}, *ref_, *cpu_, 1e-9, queue_.pool()).first);
}

TEST_F(Compare, NamesTheFirstWrongCall) {
  for (const float error : {0.5f, std::nanf(""), INFINITY}) {
    Broken forward(queue_, "attention", false, 2, error);
    const CompareResult result = compare({}, forward);
    ASSERT_TRUE(result.first);
    EXPECT_EQ(result.first->op, "attention");
    EXPECT_EQ(result.first->label, "block2");
    EXPECT_FALSE(result.first->backward);
    EXPECT_FALSE(result.first->error <= 1e-9);
    EXPECT_GE(result.worst, result.first->error);
  }
}

TEST_F(Compare, NamesTheFirstWrongBackwardCall) {
  Broken backward(queue_, "attention", true, 0, 1);
  const CompareResult result = compare({}, backward);
  ASSERT_TRUE(result.first);
  EXPECT_EQ(result.first->op, "attention");
  EXPECT_EQ(result.first->label, "block3");  // backward begins with the last layer
  EXPECT_TRUE(result.first->backward);
  EXPECT_THAT(result.first->tensor, testing::StartsWith("d "));
}

TEST_F(Compare, LaterCallsAreNotBlamed) {
  Broken forward(queue_, "rms_norm", false, 1, 0.5f);
  const CompareResult result = compare({}, forward);
  ASSERT_TRUE(result.first);
  // The wrong value is replaced after its call, so that one call alone is wrong.
  EXPECT_EQ(result.first->op, "rms_norm");
  EXPECT_DOUBLE_EQ(result.worst, result.first->error);
}

TEST(NormalizedError, CountsEveryKindOfDifference) {
  std::vector<float> a{3, 4}, b{3, 4}, zero{0, 0}, nan{NAN, 4}, inf{INFINITY, 4};
  const auto view = [](std::vector<float>& v) { return make_view(v.data(), {{2}, DType::f32}); };
  EXPECT_EQ(normalized_error(view(a), view(b)), 0);
  EXPECT_EQ(normalized_error(view(zero), view(zero)), 0);
  EXPECT_EQ(normalized_error(view(zero), view(a)), 1);
  EXPECT_EQ(normalized_error(view(a), view(zero)), INFINITY);
  EXPECT_EQ(normalized_error(view(nan), view(a)), INFINITY);
  EXPECT_EQ(normalized_error(view(a), view(nan)), INFINITY);
  EXPECT_EQ(normalized_error(view(nan), view(nan)), INFINITY);
  EXPECT_EQ(normalized_error(view(inf), view(inf)), INFINITY);
}

}  // namespace
}  // namespace fairway
