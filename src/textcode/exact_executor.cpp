#include "textcode/exact_executor.h"

#include <functional>
#include <utility>

#include "base/error.h"
#include "generate/packed_calls.h"
#include "ops/arguments.h"
#include "ops/ref/ref.h"
#include "textcode/exact_kernels.h"
#include "textcode/exact_products.h"

namespace fairway::textcode {

using Work = std::function<void()>;

// Turns calls into work over all threads; a call's rows, heads or tiles are shared out, and calls follow one another.
class ExactExecutor::Compiler : PackedCalls {
 public:
  Compiler(ExactExecutor& executor, const Program& program, std::vector<Work>& out)
      : PackedCalls(program, *executor.weights_, executor.alone_),
        executor_(executor),
        pool_(executor.queue().pool()),
        rows_(executor.rows_),
        out_(out) {}

  void operator()(const BoundCall& call) {
    FAIRWAY_ASSERT(!call.call->backward, "packed weights are for decoding");
    std::visit([&](const auto& op) { add(op, call); }, call.call->op);
  }

 private:
  // The reference's op, row by row.
  template <class Op>
  void add(const Op& op, const BoundCall& call) {
    for (const Tensor& in : call.in)
      FAIRWAY_ASSERT(!in || in.data != nullptr, "[" + std::string(Op::name) + "] takes no packed weights");
    for (int64_t row = 0; row < rows_; ++row) by_rows(op, call, row);
    out_.push_back([this_calls = std::move(calls_), &pool = pool_] {
      pool.parallel_for(static_cast<int64_t>(this_calls.size()), [&](int64_t i) { this_calls[static_cast<size_t>(i)](); });
    });
    calls_.clear();
  }
  void add(const std::monostate&, const BoundCall&) {}

  template <class Op>
  void by_rows(const Op& op, const BoundCall& call, int64_t row) {
    const Arguments declared = arguments_of(call.call->op);
    const Forward<Op> part{to_args<typename Op::In>(of_row(call.in, declared.in, row)),
                           to_args<typename Op::Out>(of_row(call.out, declared.out, row)),
                           to_args<typename Op::Saved>(of_row(call.saved, declared.saved, row)),
                           {},
                           &executor_.alone_};
    calls_.push_back([op, part] { ref::forward(op, part); });
  }
  // What a row reads and writes of tensors that have something for each.
  std::vector<Tensor> of_row(const std::vector<Tensor>& all, std::span<const Arg> declared, int64_t row) const {
    std::vector<Tensor> out = all;
    for (size_t i = 0; i < all.size(); ++i) {
      const ArgKind kind = declared[i].kind;
      const bool each = kind == ArgKind::activation || kind == ArgKind::statistic || kind == ArgKind::index;
      if (!all[i] || !each || all[i].dim(0) % rows_ != 0) continue;
      Shape shape = all[i].spec.shape;
      shape.dims[0] /= rows_;
      out[i] = all[i].part(row * shape.numel(), shape);
    }
    return out;
  }

  void add(const AttentionCached& op, const BoundCall& call) {
    const Forward<AttentionCached> f = args<AttentionCached>(call);
    const int64_t size = f.in.q.cols() / op.heads, group = op.heads / op.kv_heads, heads = rows_ * op.kv_heads;
    const int64_t length = f.in.values.dim(1);
    HeadCaches& caches = executor_.caches_.emplace_back(HeadCaches::Shape{heads, size, length});
    executor_.heads_.fit(heads, group, caches.shape());
    out_.push_back([=, this_caches = &caches, &scratch = executor_.heads_, &pool = pool_] {
      const int64_t position = *f.in.position.as<int32_t>();
      FAIRWAY_ASSERT(position >= 0 && position < length, "a position outside of the cache");
      pool.parallel_for(heads, [&](int64_t head) {
        AttendArgs a{.q = f.in.q.as<float>() + head * group * size,
                     .k = f.in.k.as<float>() + head * size,
                     .v = f.in.v.as<float>() + head * size,
                     .y = f.out.y.as<float>() + head * group * size,
                     .group = group,
                     .position = position,
                     .scale = static_cast<float>(op.scale)};
        this_caches->place(head, a);
        scratch.place(head, a);
        exact_kernels().attend(a);
      });
    });
  }
  void add(const Embed& op, const BoundCall& call) {
    const Forward<Embed> f = args<Embed>(call);
    const PackedMatrix* table = find(by_name<Embed::InOf>(call.call->in).table);
    if (table == nullptr) return add<Embed>(op, call);
    out_.push_back([=, &pool = pool_] {
      pool.parallel_for(f.in.tokens.numel(), [&](int64_t m) {
        unpack_row(*table, f.in.tokens.as<int32_t>()[m], f.out.y.as<float>() + m * table->rows.cols);
      });
    });
  }
  void add(const ProjectedEmbed& op, const BoundCall& call) {
    const Forward<ProjectedEmbed> f = args<ProjectedEmbed>(call);
    out_.push_back([=, &pool = pool_] { projected_embed(op, f, pool); });
  }
  void add(const QkvProject&, const BoundCall& call) {
    const Forward<QkvProject> f = args<QkvProject>(call);
    const auto ids = by_name<QkvProject::InOf>(call.call->in);
    multiply(f.in.x, {{matrix(ids.weight_q, f.in.weight_q), f.out.q},
                      {matrix(ids.weight_k, f.in.weight_k), f.out.k},
                      {matrix(ids.weight_v, f.in.weight_v), f.out.v}});
  }
  void add(const ProjectResidual&, const BoundCall& call) {
    const Forward<ProjectResidual> f = args<ProjectResidual>(call);
    const auto ids = by_name<ProjectResidual::InOf>(call.call->in);
    multiply(f.in.h, {{matrix(ids.weight, f.in.weight), f.out.y}});
    residual(f.in.x, f.in.scale, f.out.y);
  }
  void add(const Mlp&, const BoundCall& call) {
    const Forward<Mlp> f = args<Mlp>(call);
    const auto ids = by_name<Mlp::InOf>(call.call->in);
    multiply(f.in.m, {{matrix(ids.up, f.in.up), f.saved.post}});
    each_row(f.saved.post, [](float* row, int64_t cols, int64_t) { leaky_squares(row, cols); });
    multiply(f.saved.post, {{matrix(ids.down, f.in.down), f.out.y}});
    residual(f.in.x, f.in.scale, f.out.y);
  }
  void add(const SoftcapCrossEntropy& op, const BoundCall& call) {
    const Forward<SoftcapCrossEntropy> f = args<SoftcapCrossEntropy>(call);
    FAIRWAY_ASSERT(!f.in.addition, "a decoding program has no addition to its logits");
    multiply(f.in.x, {{matrix(by_name<SoftcapCrossEntropy::InOf>(call.call->in).table, f.in.table), f.saved.logits}});
    const auto cap = static_cast<float>(op.cap);
    each_row(f.saved.logits, [cap](float* row, int64_t cols, int64_t) { exact_kernels().softcap(row, cols, cap); });
  }

  void multiply(const Tensor& x, std::vector<Product> products) {
    out_.push_back([x, products = std::move(products), &scratch = *executor_.scratch_, &pool = pool_] {
      multiply_rows(x, products, scratch, pool);
    });
  }
  void residual(const Tensor& x, const Tensor& scale, const Tensor& y) {
    each_row(y, [x, scale](float* row, int64_t cols, int64_t m) {
      add_residual(x ? x.as<float>() + m * cols : nullptr, scale.as<float>(), cols, row);
    });
  }
  template <class Body>
  void each_row(const Tensor& y, const Body& body) {
    out_.push_back([y, body, &pool = pool_] {
      pool.parallel_for(y.rows(), [&](int64_t m) { body(y.as<float>() + m * y.cols(), y.cols(), m); });
    });
  }

  Matrix matrix(int32_t value, const Tensor& floats) const { return {find(value), floats}; }

  ExactExecutor& executor_;
  ThreadPool& pool_;
  int64_t rows_;
  std::vector<Work>& out_;
  std::vector<Work> calls_;  // of the rows of one call
};

class ExactExecutor::ExactSession final : public HostSession {
 public:
  ExactSession(Recording recording, Arena* activations, ExactExecutor& executor)
      : HostSession(std::move(recording), activations, executor) {
    Compiler compile(executor, program(), work_);
    for (const BoundCall& call : calls()) compile(call);
  }
  void run() override {
    for (const Work& work : work_) work();
  }

 private:
  std::vector<Work> work_;
};

ExactExecutor::ExactExecutor(const PackedWeights& weights, int64_t rows, Queue& queue)
    : Executor(queue),
      weights_(&weights),
      rows_(rows),
      scratch_(std::make_unique<ProductScratch>(rows, weights.most_cols(), queue.pool().threads())) {}

ExactExecutor::~ExactExecutor() = default;

std::unique_ptr<Session> ExactExecutor::open(Recording recording, Arena* activations) {
  return std::make_unique<ExactSession>(std::move(recording), activations, *this);
}

void ExactExecutor::run_call(const BoundCall&) { FAIRWAY_ASSERT(false, "an exact program runs as a whole"); }

}  // namespace fairway::textcode
