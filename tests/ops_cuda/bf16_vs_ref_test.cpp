// Every op in bf16 on the device, at awkward sizes and at the published ones, within twice the error of a plain run in bf16:
// ref in float on the same inputs, with what forward leaves and every result rounded. The MLP has a test of its own.
#include <cmath>
#include <map>

#include "ops/arguments.h"
#include "ops/compare.h"
#include "ops/ref_backend.h"
#include "ops_cuda/cuda_backend.h"
#include "ops_cuda/naive_bf16.h"

namespace fairway::ops_test {
namespace {

std::vector<double> rounded(const std::vector<double>& values) {
  if (values.empty()) return values;
  Guarded halves({{static_cast<int64_t>(values.size())}, DType::bf16}, 0);
  halves.set(values);
  return halves.values();
}

enum class How : uint8_t { truth, naive, device };

// One case with the tensors of one way to run it.
template <class Op>
class HalfRun {
 public:
  HalfRun(const OpCase<Op>& example, How how, int64_t offset) : example_(example), how_(how), offset_(offset) {
    for (size_t i = 0; i < example.in.size(); ++i) {
      const Slot& slot = example.in[i];
      if (slot.content == Content::absent) {
        in_.emplace_back();
        continue;
      }
      const Arg& arg = declared_.in[i];
      in_.push_back(make({slot.shape, arg.kind == ArgKind::index ? DType::i32 : type(arg)}));
      const auto values = content_of(slot, i + 1);
      in_.back().set(arg.in_working_precision() ? rounded(values) : values);
    }
    plan_ = example.op.plan(float_specs());
    for (size_t i = 0; i < plan_.out.size(); ++i) out_.push_back(make({plan_.out[i].shape, type(declared_.out[i])}));
    for (size_t i = 0; i < plan_.saved.size(); ++i) saved_.push_back(make({plan_.saved[i].shape, type(declared_.saved[i])}));
    for (size_t i = 0; i < out_.size(); ++i) {
      dout_.push_back(carries_gradient<Op>(i) ? make(out_[i].tensor().spec) : Guarded());
      if (dout_.back().tensor()) dout_.back().set(rounded(content_of(uniform(plan_.out[i].shape), 100 + i)));
    }
  }

  void forward(Queue& queue) {
    Guarded workspace({{static_cast<int64_t>(plan_.forward_workspace)}, DType::u8}, 0);
    backend().forward(example_.op, {args<typename Op::In>(in_), args<typename Op::Out>(out_), args<typename Op::Saved>(saved_),
                                    workspace.tensor(), &queue});
    if (how_ != How::naive) return;
    for (size_t i = 0; i < out_.size(); ++i)
      if (declared_.out[i].in_working_precision()) out_[i].set(rounded(out_[i].values()));
    for (size_t i = 0; i < saved_.size(); ++i)
      if (declared_.saved[i].in_working_precision()) saved_[i].set(rounded(saved_[i].values()));
  }

  void backward(bool accumulate, Queue& queue) {
    accumulate_ = accumulate;
    din_.clear();
    for (size_t i = 0; i < in_.size(); ++i) {
      const Slot& slot = example_.in[i];
      din_.push_back(slot.differentiated() ? make({slot.shape, gradient_type(declared_.in[i])}) : Guarded());
      if (slot.differentiated() && accumulate) din_.back().set(rounded(content_of(uniform(slot.shape), accumulated_seed(i))));
    }
    auto wanted = args<typename Op::In>(din_);
    for (size_t i = 0; i < din_.size(); ++i) reinterpret_cast<Tensor*>(&wanted)[i].accumulate = accumulate;
    Guarded workspace({{static_cast<int64_t>(plan_.backward_workspace)}, DType::u8}, 0);
    backend().backward(example_.op, {args<typename Op::In>(in_), args<typename Op::Out>(out_), args<typename Op::Saved>(saved_),
                                     args<typename Op::Out>(dout_), wanted, workspace.tensor(), &queue});
  }

  std::vector<double> result(size_t i) const {
    if constexpr (HasNaive<Op>)
      if (how_ == How::naive) return step_by_step().out[i].at;
    return told(out_[i]);
  }
  std::vector<double> gradient(size_t i) const {
    if constexpr (HasNaive<Op>)
      if (how_ == How::naive) return added(i, step_by_step().din[i].at);
    return told(din_[i]);
  }
  size_t results() const { return out_.size(); }
  size_t gradients() const { return din_.size(); }
  bool intact() const {
    for (const auto* group : {&in_, &out_, &saved_, &dout_, &din_})
      for (const Guarded& t : *group)
        if (!t.intact()) return false;
    return true;
  }

 private:
  static std::vector<Naive> naive_of(const std::vector<Guarded>& tensors) {
    std::vector<Naive> out;
    for (const Guarded& t : tensors) {
      const Shape& shape = t.tensor().spec.shape;
      out.push_back(t.tensor() ? Naive{shape.rank < 2 ? 1 : shape.rows(), shape.last(), t.values()} : Naive{});
    }
    return out;
  }
  const NaiveResults& step_by_step() const requires HasNaive<Op> {
    if (stepped_.out.empty()) stepped_ = naive_bf16(example_.op, naive_of(in_), naive_of(dout_));
    return stepped_;
  }
  std::vector<double> added(size_t i, std::vector<double> gradient) const {
    const auto before =
        accumulate_ ? rounded(content_of(uniform(example_.in[i].shape), accumulated_seed(i))) : std::vector<double>{};
    for (size_t k = 0; k < before.size() && k < gradient.size(); ++k) gradient[k] += before[k];
    return rounded(gradient);
  }

  // As the device's programs have them (ops/cuda/lowering.h).
  DType type(const Arg& arg) const { return how_ == How::device && arg.in_working_precision() ? DType::bf16 : DType::f32; }
  DType gradient_type(const Arg& arg) const { return arg.kind == ArgKind::matrix ? DType::f32 : type(arg); }
  Guarded make(Spec spec) const { return {spec, offset_}; }
  std::vector<double> told(const Guarded& t) const { return how_ == How::naive ? rounded(t.values()) : t.values(); }
  BackendUnderTest<Op> backend() const { return how_ == How::device ? cuda_backend<Op>() : ref_backend<Op>(); }
  template <class Args>
  static Args args(const std::vector<Guarded>& tensors) {
    std::vector<Tensor> views;
    for (const Guarded& guarded : tensors) views.push_back(guarded.tensor());
    return to_args<Args>(views);
  }
  typename Op::In float_specs() const {  // plans are made in float; a device changes types after
    auto out = args<typename Op::In>(in_);
    for (size_t i = 0; i < in_.size(); ++i)
      if (Spec& spec = reinterpret_cast<Tensor*>(&out)[i].spec; spec.dtype == DType::bf16) spec.dtype = DType::f32;
    return out;
  }

  const OpCase<Op>& example_;
  const Arguments declared_ = arguments_of(Op{});
  How how_;
  int64_t offset_;
  bool accumulate_ = false;
  mutable NaiveResults stepped_;  // made when first asked for
  OpPlan plan_;
  std::vector<Guarded> in_, out_, saved_, dout_, din_;
};

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double total = 0;
  for (size_t i = 0; i < a.size(); ++i) total += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(total);
}

// Errors of all cases of an op, relative to each truth. Each alone may be unlucky when it is a few numbers, so the sweep over
// small sizes is held to twice the plain run's error as a whole and to kAlone times in each case; large ones to twice at once.
class Errors {
 public:
  static constexpr double kTogether = 2, kAlone = 4;
  explicit Errors(double most) : most_(most) {}

  void add(const std::vector<double>& have, const std::vector<double>& naive, const std::vector<double>& truth, double noise,
           const std::string& what) {
    const double count = std::sqrt(static_cast<double>(truth.size()));
    const double size = distance(truth, std::vector<double>(truth.size()));
    // By luck a plain run may be nearer than rounding is on average.
    const double error = distance(have, truth), plain = std::max(distance(naive, truth), size * 0x1p-9 / std::sqrt(3.0));
    EXPECT_TRUE(error <= most_ * plain + noise * count)
        << what << ": error " << error << ", a plain run's " << plain << " over " << truth.size();
    if (!(size > noise * count)) return;  // nothing but noise
    Sum& sum = sums_[what];
    sum.error += std::pow(count * error / size, 2);
    sum.plain += std::pow(count * (plain + noise * count) / size, 2);
  }
  void check() const {
    for (const auto& [what, sum] : sums_)
      EXPECT_TRUE(std::sqrt(sum.error) <= kTogether * std::sqrt(sum.plain))
          << what << ", all cases: error " << std::sqrt(sum.error) << ", a plain run's " << std::sqrt(sum.plain);
  }

 private:
  struct Sum {
    double error = 0, plain = 0;
  };
  double most_;
  std::map<std::string, Sum> sums_;
};

template <class Op>
void check_case(const OpCase<Op>& example, int64_t offset, Errors& errors) {
  SCOPED_TRACE(example.label() + ", offset " + std::to_string(offset));
  constexpr double kLeastNoise = 2e-6;  // of results that cancel
  const double noise = std::max(example.allowed.noise, kLeastNoise);
  Queue queue(1);
  HalfRun<Op> truth(example, How::truth, offset), naive(example, How::naive, offset), have(example, How::device, offset);
  for (auto* run : {&truth, &naive, &have}) run->forward(queue);
  for (size_t i = 0; i < truth.results(); ++i)
    errors.add(have.result(i), naive.result(i), truth.result(i), noise, "result " + std::to_string(i));
  for (const bool accumulate : {false, true}) {
    for (auto* run : {&truth, &naive, &have}) run->backward(accumulate, queue);
    for (size_t i = 0; i < truth.gradients(); ++i)
      if (example.in[i].differentiated())
        errors.add(have.gradient(i), naive.gradient(i), truth.gradient(i), noise,
                   (accumulate ? "added gradient " : "gradient ") + std::to_string(i));
  }
  EXPECT_TRUE(have.intact()) << "wrote outside of a tensor";
}

template <class Op>
void check_every_case() {
  if (!has_device()) GTEST_SKIP() << "no CUDA device";
  Errors errors(Errors::kAlone);
  for (const OpCase<Op>& example : cases(Op{})) {
    for (const int64_t offset : {0, 1}) check_case(example, offset, errors);
    if (testing::Test::HasFailure()) return;  // one example of what is wrong is enough
  }
  errors.check();
}

// A plain run that was wrong would allow anything: it must be near the truth itself. Needs no device.
template <class Op>
void check_naive() {
  constexpr double kNear = 0.03, kNoise = 0.01;  // a gradient that is one number may nearly cancel
  for (const OpCase<Op>& example : cases(Op{})) {
    SCOPED_TRACE(example.label());
    Queue queue(1);
    HalfRun<Op> truth(example, How::truth, 0), naive(example, How::naive, 0);
    for (auto* run : {&truth, &naive}) {
      run->forward(queue);
      run->backward(true, queue);
    }
    const auto near = [&](const std::vector<double>& have, const std::vector<double>& want) {
      ASSERT_EQ(have.size(), want.size());
      const double size = distance(want, std::vector<double>(want.size()));
      EXPECT_TRUE(distance(have, want) <= kNear * size + kNoise * std::sqrt(static_cast<double>(want.size())))
          << distance(have, want) << " of " << size;
    };
    for (size_t i = 0; i < truth.results(); ++i) near(naive.result(i), truth.result(i));
    for (size_t i = 0; i < truth.gradients(); ++i) near(naive.gradient(i), truth.gradient(i));
  }
}

TEST(NaiveBf16, IsNearTheTruth) {
  check_naive<QkvProject>();
  check_naive<ProjectResidual>();
  check_naive<LowRankAdd>();
  check_naive<ProjectedEmbed>();
  check_naive<Attention>();
}

TEST(CudaBf16, Embed) { check_every_case<Embed>(); }
TEST(CudaBf16, ProjectedEmbed) { check_every_case<ProjectedEmbed>(); }
TEST(CudaBf16, Add) { check_every_case<Add>(); }
TEST(CudaBf16, SmearGate) { check_every_case<SmearGate>(); }
TEST(CudaBf16, SmearGateInput) { check_every_case<SmearGateInput>(); }
TEST(CudaBf16, RmsNorm) { check_every_case<RmsNorm>(); }
TEST(CudaBf16, MixNorm) { check_every_case<MixNorm>(); }
TEST(CudaBf16, QkvProject) { check_every_case<QkvProject>(); }
TEST(CudaBf16, ValueMix) { check_every_case<ValueMix>(); }
TEST(CudaBf16, QkNormRope) { check_every_case<QkNormRope>(); }
TEST(CudaBf16, Attention) { check_every_case<Attention>(); }
TEST(CudaBf16, GateLogits) { check_every_case<GateLogits>(); }
TEST(CudaBf16, HeadOutput) { check_every_case<HeadOutput>(); }
TEST(CudaBf16, ProjectResidual) { check_every_case<ProjectResidual>(); }
TEST(CudaBf16, LowRankAdd) { check_every_case<LowRankAdd>(); }
TEST(CudaBf16, PickRows) { check_every_case<PickRows>(); }
TEST(CudaBf16, Skip) { check_every_case<Skip>(); }
TEST(CudaBf16, LaneMix) { check_every_case<LaneMix>(); }
TEST(CudaBf16, LaneMerge) { check_every_case<LaneMerge>(); }
TEST(CudaBf16, SoftcapCrossEntropy) { check_every_case<SoftcapCrossEntropy>(); }

// Sizes that have kernels of their own: rows of 512, eight heads of 64 on four.
constexpr int64_t kRows = 256, kWidth = 512;
Slot rows() { return uniform({kRows, kWidth}); }
template <class Op>
void check_published(const OpCase<Op>& example) {
  if (!has_device()) GTEST_SKIP() << "no CUDA device";
  Errors errors(Errors::kTogether);
  check_case(example, 0, errors);
}

TEST(CudaBf16Published, Rows) {
  check_published<RmsNorm>({{.scale = 0.5}, {rows()}});
  check_published<MixNorm>({{.scale = 0.5}, {rows(), rows(), uniform({2, kWidth})}});
  check_published<Skip>({{}, {rows(), rows(), uniform({kWidth}), uniform({kWidth}, -2, 2)}});
  check_published<Skip>({{}, {rows(), rows(), uniform({kWidth}), absent()}});
  check_published<SmearGate>({{.row_length = 64}, {rows(), uniform({kWidth}, -2, 2)}});
  check_published<SmearGateInput>(
      {{.row_length = 64, .bos = 1}, {indices(kRows, 5), rows(), uniform({12}, -2, 2), uniform({1}, 0.5, 1)}});
  check_published<LaneMix>({{}, {rows(), rows(), rows(), rows(), uniform({2}, 0.5, 1.5), uniform({2, 2}, 0.5, 1.5)}});
}

TEST(CudaBf16Published, Heads) {
  const Slot q = uniform({kRows, 512}, -2, 2), k = uniform({kRows, 256}, -2, 2), v = uniform({kRows, 256});
  check_published<QkNormRope>({{.row_length = 64, .head_dim = 64}, {q, k, uniform({8}, 0.5, 2), rope(64, 16)}});
  const Slot logit = uniform({kRows, 8}, -2, 2);
  check_published<GateLogits>({{}, {rows(), uniform({8, 12}, -2, 2)}});
  check_published<HeadOutput>({{.heads = 8, .kv_heads = 4}, {q, v, absent()}});
  check_published<HeadOutput>({{.heads = 8, .kv_heads = 4}, {q, absent(), logit}});
  check_published<HeadOutput>({{.heads = 8, .kv_heads = 4}, {q, v, logit}});
  for (const bool exclusive : {false, true})
    for (const Slot& gate : {absent(), logit}) {
      const auto check = [&](int64_t length, const Slot& start) {
        check_published<Attention>({{.row_length = length, .heads = 8, .kv_heads = 4, .scale = 0.125, .exclusive = exclusive},
                                    {q, k, v, start, gate, absent()}});
      };
      check(kRows, absent());
      check(128, absent());
      check(kRows, segments(kRows, 50));
    }
}

// A document over many tiles beside others that share one, some of a single token, and documents behind which a tile begins.
TEST(CudaBf16Published, DocumentsOfEveryLength) {
  constexpr int64_t kMany = 640;
  const Slot q = uniform({kMany, 512}, -2, 2), k = uniform({kMany, 256}, -2, 2), v = uniform({kMany, 256});
  const Attention op{.row_length = kMany, .heads = 8, .kv_heads = 4, .scale = 0.125, .exclusive = true};
  for (const Slot& starts : {segments(kMany, 4, 400), segments(kMany, 60, 130), segments(kMany, 90), segments(kMany, 150, 1),
                             segments(kMany, 2), segments(kMany, 1e9)})
    check_published<Attention>({op, {q, k, v, starts, uniform({kMany, 8}, -2, 2), absent()}});
}

// Lengths that cuDNN does not take. Under FAIRWAY_CUDA_PATH=generic they run in the kernels of other devices, also on Hopper.
TEST(CudaBf16Published, HeadsInWarps) {
  for (const auto& [count, length] : {std::pair<int64_t, int64_t>{240, 60}, {77, 77}, {300, 300}}) {
    const Slot q = uniform({count, 512}, -2, 2), k = uniform({count, 256}, -2, 2), v = uniform({count, 256});
    for (const bool exclusive : {false, true})
      for (const Slot& gate : {absent(), uniform({count, 8}, -2, 2)})
        for (const Slot& starts : {absent(), segments(count, 30)}) {
          if (starts.content == Content::absent && length >= 128) continue;
          check_published<Attention>({{.row_length = length, .heads = 8, .kv_heads = 4, .scale = 0.125, .exclusive = exclusive},
                                      {q, k, v, starts, gate, absent()}});
        }
  }
}

TEST(CudaBf16Published, Products) {
  check_published<QkvProject>({{}, {rows(), uniform({512, 512}), uniform({256, 512}), uniform({256, 512})}});
  check_published<ProjectResidual>({{}, {rows(), rows(), uniform({512, 512}, -0.1, 0.1), uniform({512})}});
  const Slot down = uniform({2, 80, kWidth}, -0.1, 0.1), up = uniform({2, kWidth, 80}, -0.1, 0.1);
  check_published<LowRankAdd>({{.scale = 1.8}, {rows(), rows(), down, up, uniform({kWidth})}});
  check_published<LowRankAdd>({{.scale = 1.8}, {rows(), rows(), down, up, absent()}});
  check_published<SoftcapCrossEntropy>(
      {{.cap = 30}, {rows(), uniform({1024, 512}, -0.2, 0.2), indices(kRows, 1024), absent(), absent()}});
  check_published<SoftcapCrossEntropy>(
      {{.cap = 30},
       {rows(), uniform({1024, 512}, -0.2, 0.2), indices(kRows, 1024), uniform({kRows, 1024}), shares(kRows, 1024)}});
  const Slot many = uniform({1100, kWidth}), table = uniform({1024, kWidth}, -0.2, 0.2);
  check_published<SoftcapCrossEntropy>(
      {{.cap = 30, .logits_wanted = false}, {rows(), table, indices(kRows, 1024), absent(), absent()}});
  check_published<SoftcapCrossEntropy>(
      {{.cap = 30, .logits_wanted = false}, {many, table, indices(1100, 1024), absent(), absent()}});
  check_published<SoftcapCrossEntropy>(
      {{.cap = 5, .logits_wanted = false}, {many, table, indices(1100, 1024), absent(), absent()}});
  check_published<SoftcapCrossEntropy>(
      {{.cap = 30, .logits_wanted = false}, {many, table, indices(1100, 1024), absent(), shares(1100, 1024)}});
  check_published<Embed>({{}, {indices(1400, 3), uniform({3, 512})}});
  check_published<Embed>({{}, {indices(5000, 1024), uniform({1024, 512})}});
}

}  // namespace
}  // namespace fairway::ops_test
