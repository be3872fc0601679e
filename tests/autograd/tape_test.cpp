// What the tape records: gradients of values used often, calls left out, observe points, absent arguments, wrong shapes.
#include "autograd/tape.h"

#include <gmock/gmock.h>

#include "autograd/passes.h"
#include "backends/backends.h"
#include "base/error.h"

namespace fairway {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

class TapeTest : public testing::Test {
 protected:
  static Tensor view(std::vector<float>& memory) {
    return make_view(memory.data(), {{1, static_cast<int64_t>(memory.size())}, DType::f32});
  }
  void run(
      Recording recording, const Observer& observer = [](std::string_view, const Tensor&) {}) {
    session_ = executor_->open(std::move(recording));
    session_->run(observer);
  }
  Var x() { return tape_.param({0}, "x", view(x_), view(dx_)); }
  Var gradient() { return tape_.input("d loss", view(dy_)); }
  static int backward_calls(const Program& program) {
    return static_cast<int>(
        std::count_if(program.calls.begin(), program.calls.end(), [](const Call& c) { return c.backward; }));
  }

  Queue queue_{1};
  std::unique_ptr<Executor> executor_ = make_ref_executor(queue_);
  std::unique_ptr<Session> session_;
  Tape tape_;
  std::vector<float> x_{1, 2, 3}, dx_{0, 0, 0}, dy_{1, 10, 100};
};

TEST_F(TapeTest, OneValueTwiceInACallGetsBothGradients) {
  run(std::move(tape_).finish(tape_.one(Add{}, {x(), x()}), gradient()));
  EXPECT_THAT(dx_, ElementsAre(2, 20, 200));
}

TEST_F(TapeTest, APlannedValueTwiceInACallGetsBothGradients) {
  std::vector<float> zero{0, 0, 0}, unused{0, 0, 0};
  const Var middle = tape_.one(Add{}, {x(), tape_.input("zero", view(zero))});
  run(std::move(tape_).finish(tape_.one(Add{}, {middle, middle}), gradient()));
  EXPECT_THAT(dx_, ElementsAre(2, 20, 200));
}

TEST_F(TapeTest, SeveralUsesAccumulate) {
  const Var twice = tape_.one(Add{}, {x(), x()}), thrice = tape_.one(Add{}, {twice, x()}),
            five = tape_.one(Add{}, {thrice, twice});
  run(std::move(tape_).finish(five, gradient()));
  EXPECT_THAT(dx_, ElementsAre(5, 50, 500));
}

TEST_F(TapeTest, ParameterGradientsAddToWhatIsThere) {
  dx_ = {7, 7, 7};
  run(std::move(tape_).finish(tape_.one(Add{}, {x(), x()}), gradient()));
  EXPECT_THAT(dx_, ElementsAre(9, 27, 207));
  session_->run();  // a second micro-batch
  EXPECT_THAT(dx_, ElementsAre(11, 47, 407));
}

TEST_F(TapeTest, InputsGetNoGradient) {
  std::vector<float> other{1, 1, 1};
  const Program program =
      std::move(tape_).finish(tape_.one(Add{}, {x(), tape_.input("other", view(other))}), gradient()).program;
  ASSERT_EQ(program.calls.size(), 2U);
  EXPECT_NE(program.calls[1].din[0], kNoValue);
  EXPECT_EQ(program.calls[1].din[1], kNoValue);
}

TEST_F(TapeTest, CallsWithoutAGradientAreLeftOut) {
  const int32_t x_id = x().id;
  const Var used = tape_.one(RmsNorm{}, {x()});
  tape_.one(RmsNorm{}, {used});  // its result goes nowhere
  const Program program = std::move(tape_).finish(tape_.one(Add{}, {used, used}), gradient()).program;
  EXPECT_EQ(backward_calls(program), 2);
  for (const Call& call : program.calls) {
    if (!call.backward || op_name(call.op) != "rms_norm") continue;
    EXPECT_EQ(call.in[0], x_id) << "the one that reads x";
  }
}

TEST_F(TapeTest, WithoutALossNothingIsDifferentiated) {
  tape_.one(Add{}, {x(), x()});
  EXPECT_EQ(backward_calls(std::move(tape_).finish().program), 0);
}

TEST_F(TapeTest, KeptValuesOutliveTheProgram) {
  const Var kept = tape_.one(Add{}, {x(), x()});
  tape_.keep(kept);
  Var last = kept;
  for (int i = 0; i < 6; ++i) last = tape_.one(RmsNorm{}, {last});
  run(std::move(tape_).finish(last, gradient()));
  const Tensor value = session_->fetch(kept.id);
  EXPECT_THAT(std::vector<float>(value.as<float>(), value.as<float>() + 3), ElementsAre(2, 4, 6));
}

TEST_F(TapeTest, ObservePointsAreToldInOrderWithTheirTensor) {
  const Var two = tape_.one(Add{}, {x(), x()});
  tape_.observe("two", two);
  const Var three = tape_.one(Add{}, {two, x()});
  tape_.observe("three", three);
  tape_.observe("three again", three);
  const Var last = tape_.one(RmsNorm{}, {three});
  tape_.observe("x", x());
  std::vector<std::pair<std::string, float>> told;
  run(std::move(tape_).finish(last, gradient()),
      [&](std::string_view name, const Tensor& value) { told.emplace_back(name, value.as<float>()[2]); });
  EXPECT_THAT(told, ElementsAre(testing::Pair("two", 6), testing::Pair("three", 9), testing::Pair("three again", 9),
                                testing::Pair("x", 3)));
}

TEST_F(TapeTest, AValueObservedLateIsStillThere) {
  const Var early = tape_.one(Add{}, {x(), x()});
  Var last = tape_.one(RmsNorm{}, {x()});
  for (int i = 0; i < 3; ++i) last = tape_.one(RmsNorm{}, {last});
  tape_.observe("early", early);  // nothing reads it after its own call
  std::vector<float> seen;
  run(std::move(tape_).finish(), [&](std::string_view, const Tensor& v) { seen.assign(v.as<float>(), v.as<float>() + 3); });
  EXPECT_THAT(seen, ElementsAre(2, 4, 6));
}

TEST_F(TapeTest, AbsentArgumentsStayAbsent) {
  std::vector<float> weight{2, 2, 2}, dweight{0, 0, 0};
  const Var w =
      tape_.param({1}, "w", make_view(weight.data(), {{3}, DType::f32}), make_view(dweight.data(), {{3}, DType::f32}));
  run(std::move(tape_).finish(tape_.one(Skip{}, {x(), x(), w, Var{}}), gradient()));
  for (const BoundCall& call : session_->calls()) {
    if (op_name(call.call->op) != "skip") continue;
    EXPECT_FALSE(call.in[3]);
    if (!call.call->backward) continue;
    EXPECT_FALSE(call.din[3]);
  }
  EXPECT_THAT(dx_, ElementsAre(3, 30, 300));      // x + 2·x
  EXPECT_THAT(dweight, ElementsAre(1, 20, 300));  // dy·x
}

TEST_F(TapeTest, OnePartOfAnArenaIsOneValue) {
  Arena arena("inputs", 1024);
  const Tensor whole = arena.make("whole", {{2, 3}, DType::f32});
  EXPECT_EQ(x().id, x().id);
  EXPECT_EQ(tape_.input("row", whole.slice(1)).id, tape_.input("the same", whole.part(3, {3})).id);
  EXPECT_NE(tape_.input("row", whole.slice(1)).id, tape_.input("another", whole.slice(0)).id);
  EXPECT_NE(tape_.input("row", whole.slice(1)).id, tape_.input("as a matrix", whole.part(3, {1, 3})).id);
}

TEST_F(TapeTest, ARecordingRunsOverWhateverItIsBoundTo) {
  const Var sum = tape_.one(Add{}, {x(), tape_.input("other", view(x_))});
  tape_.keep(sum);
  Recording recording = std::move(tape_).finish(sum, gradient());
  std::vector<float> other{5, 6, 7}, elsewhere{0, 0, 0};
  for (size_t slot = 0; slot < recording.program.slots.size(); ++slot)
    if (recording.program.slots[slot].kind == Slot::Kind::parameter)
      recording.bindings.bind(static_cast<int32_t>(slot), view(other));
  rebind_gradients(recording, [&](const ParamSlot& which) {
    EXPECT_EQ(which, ParamSlot{0});
    return view(elsewhere);
  });
  run(recording);
  EXPECT_THAT(dx_, ElementsAre(0, 0, 0));
  EXPECT_THAT(elsewhere, ElementsAre(1, 10, 100));
  EXPECT_EQ(session_->fetch(sum.id).as<float>()[2], 10);
  drop_gradients(recording.program, [](const ParamSlot&) { return true; });
  run(recording);
  EXPECT_THAT(elsewhere, ElementsAre(1, 10, 100)) << "a frozen parameter got a gradient";
}

// x is read by two calls: with the pass a run begins anew, without it the caller's numbers are added to.
TEST_F(TapeTest, GradientsMayBeginAnewWithEachRun) {
  const Var sum = tape_.one(Add{}, {tape_.one(RmsNorm{}, {x()}), x()});
  Recording recording = std::move(tape_).finish(sum, gradient());
  run(recording);
  const std::vector<float> once = dx_;
  run(recording);
  EXPECT_NE(dx_, once);
  overwrite_gradients(recording.program);
  for (int i = 0; i < 2; ++i) {
    run(recording);
    EXPECT_EQ(dx_, once);
  }
}

TEST_F(TapeTest, StateIsZeroAtFirstThenWhatTheLastRunLeft) {
  const Var total = tape_.state("total", {{1, 3}, DType::f32});
  tape_.call(AccumulateScaled{}, {total, tape_.input("x", view(x_)), Var{}});
  const Recording recording = std::move(tape_).finish();
  const auto first = executor_->open(recording), second = executor_->open(recording);
  for (int i = 0; i < 3; ++i) first->run();
  second->run();
  const auto last_of = [&](Session& session) { return session.fetch(total.id).as<float>()[2]; };
  EXPECT_EQ(last_of(*first), 9);
  EXPECT_EQ(last_of(*second), 3) << "sessions share no state";
  first->clear_state();
  first->run();
  EXPECT_EQ(last_of(*first), 3);
}

TEST_F(TapeTest, ProductsOfObservedValuesAreSummedInState) {
  const Var twice = tape_.one(Add{}, {x(), x()});
  tape_.observe("twice", twice);
  tape_.observe("unwanted", x());
  Recording recording = std::move(tape_).finish();
  const auto sums = sum_products(recording.program, [](const std::string& point) { return point == "twice"; });
  ASSERT_EQ(sums.size(), 1U);
  const auto session = executor_->open(recording);
  session->run();
  session->run();
  const Tensor sum = session->fetch(sums.at("twice"));
  EXPECT_EQ(sum.as<double>()[0], 2 * 2 * 2);      // of (2, 4, 6), twice
  EXPECT_EQ(sum.as<double>()[3 * 2], 2 * 6 * 2);  // row 2, column 0
}

template <class Record>
std::string refusal(Record record) {
  try {
    record();
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST_F(TapeTest, WrongShapesAreRefusedByTheOp) {
  std::vector<float> two{1, 2};
  std::vector<int32_t> ids{1};
  const Var small = tape_.input("small", view(two)), token = tape_.input("ids", make_view(ids.data(), {{1}, DType::i32}));
  EXPECT_THAT(refusal([&] { tape_.one(Add{}, {x(), small}); }), HasSubstr("[add] "));
  EXPECT_THAT(refusal([&] { tape_.one(SmearGate{.row_length = 1}, {x(), small}); }), HasSubstr("[smear_gate] "));
  EXPECT_THAT(refusal([&] { tape_.one(SmearGate{.row_length = 0}, {x(), x()}); }), HasSubstr("[smear_gate] "));
  EXPECT_THAT(refusal([&] { tape_.one(Embed{}, {x(), x()}); }), HasSubstr("[embed] "));
  EXPECT_THAT(refusal([&] { tape_.one(QkvProject{}, {x(), small, small, small}); }), HasSubstr("[qkv_project] "));
  EXPECT_THAT(refusal([&] {
                tape_.one(Attention{.row_length = 1, .heads = 2, .kv_heads = 1}, {x(), x(), x(), Var{}, Var{}, Var{}});
              }),
              HasSubstr("[attention] "));
  EXPECT_THAT(refusal([&] { tape_.one(NewtonSchulz{}, {x()}); }), HasSubstr("[newton_schulz] "));
  EXPECT_THAT(refusal([&] {
                tape_.one(SoftcapCrossEntropy{}, {x(), small, token, {}, {}});
              }),
              HasSubstr("[softcap_cross_entropy] "));
}

}  // namespace
}  // namespace fairway
