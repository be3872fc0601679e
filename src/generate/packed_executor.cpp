#include "generate/packed_executor.h"

#include <functional>
#include <utility>

#include "backends/backends.h"
#include "base/error.h"
#include "generate/packed_calls.h"
#include "generate/packed_phases.h"

namespace fairway {

struct PackedExecutor::Phase {
  std::function<void(const PhaseShare&)> work;
  bool shared = false;  // else the first thread does it alone
};

struct PackedExecutor::Phases {
  std::vector<Phase> list;
};

// Turns calls into phases; those without packed weights go to the CPU backend as they are.
class PackedExecutor::Compiler : PackedCalls {
 public:
  Compiler(PackedExecutor& executor, const Program& program, Phases& out)
      : PackedCalls(program, *executor.weights_, executor.alone_), executor_(executor), out_(out) {}

  void operator()(const BoundCall& call) {
    FAIRWAY_ASSERT(!call.call->backward, "packed weights are for decoding");
    std::visit([&](const auto& op) { add(op, call); }, call.call->op);
  }

 private:
  template <class Op>
  void add(const Op& op, const BoundCall& call) {
    for (const Tensor& in : call.in)
      FAIRWAY_ASSERT(!in || in.data != nullptr, "[" + std::string(op_name(op)) + "] takes packed weights one row at a time");
    alone([&floats = *executor_.floats_, &call](const PhaseShare&) { floats.run_call(call); });
  }
  void add(const AttentionCached& op, const BoundCall& call) {
    const Forward<AttentionCached> forward = args<AttentionCached>(call);
    shared([=](const PhaseShare& share) { packed::attend(op, forward, share); });
  }
  void add(const Embed& op, const BoundCall& call) {
    const Forward<Embed> forward = args<Embed>(call);
    const PackedMatrix* table = find(by_name<Embed::InOf>(call.call->in).table);
    if (table == nullptr) return add<Embed>(op, call);
    alone([=](const PhaseShare&) { packed::embed(forward, *table); });
  }
  void add(const ProjectedEmbed& op, const BoundCall& call) {
    const Forward<ProjectedEmbed> forward = args<ProjectedEmbed>(call);
    shared([=](const PhaseShare& share) { packed::projected_embed(op, forward, share); });
  }
  void add(const QkvProject& op, const BoundCall& call) {
    const Forward<QkvProject> forward = args<QkvProject>(call);
    const packed::Qkv weights{find(by_name<QkvProject::InOf>(call.call->in).weight_q),
                              find(by_name<QkvProject::InOf>(call.call->in).weight_k),
                              find(by_name<QkvProject::InOf>(call.call->in).weight_v)};
    if (!weights.q || !weights.k || !weights.v || !one_row(forward.in.x)) return add<QkvProject>(op, call);
    shared([=](const PhaseShare& share) { packed::project(forward, weights, share); });
  }
  void add(const ProjectResidual& op, const BoundCall& call) {
    const Forward<ProjectResidual> forward = args<ProjectResidual>(call);
    const PackedMatrix* weight = find(by_name<ProjectResidual::InOf>(call.call->in).weight);
    if (weight == nullptr || !one_row(forward.in.h)) return add<ProjectResidual>(op, call);
    shared([=](const PhaseShare& share) { packed::project_residual(forward, *weight, share); });
  }
  void add(const Mlp& op, const BoundCall& call) {
    const Forward<Mlp> forward = args<Mlp>(call);
    const PackedMatrix *up = find(by_name<Mlp::InOf>(call.call->in).up), *down = find(by_name<Mlp::InOf>(call.call->in).down);
    if (up == nullptr || down == nullptr || !one_row(forward.in.m)) return add<Mlp>(op, call);
    shared([=](const PhaseShare& share) { packed::mlp_up(forward, *up, share); });
    shared([=](const PhaseShare& share) { packed::mlp_down(forward, *down, share); });
  }
  void add(const SoftcapCrossEntropy& op, const BoundCall& call) {
    const Forward<SoftcapCrossEntropy> forward = args<SoftcapCrossEntropy>(call);
    const PackedMatrix* table = find(by_name<SoftcapCrossEntropy::InOf>(call.call->in).table);
    if (table == nullptr || !one_row(forward.in.x) || forward.in.addition || forward.in.expected)
      return add<SoftcapCrossEntropy>(op, call);
    shared([=](const PhaseShare& share) { packed::head(op, forward, *table, share); });
  }

  static bool one_row(const Tensor& x) { return x.rows() == 1; }
  void alone(std::function<void(const PhaseShare&)> work) { out_.list.push_back({std::move(work), false}); }
  void shared(std::function<void(const PhaseShare&)> work) { out_.list.push_back({std::move(work), true}); }

  PackedExecutor& executor_;
  Phases& out_;
};

PackedExecutor::PackedExecutor(const PackedWeights& weights, Queue& queue)
    : Executor(queue),
      weights_(&weights),
      floats_(make_executor(Backend::cpu, alone_)),
      barrier_(queue.pool().threads()),
      digits_(static_cast<size_t>(queue.pool().threads()), cpu::DigitVector(weights.most_cols())) {}

PackedExecutor::~PackedExecutor() = default;

// Phases are made when the program is opened. Call by call it cannot run, since they span calls.
class PackedExecutor::PackedSession final : public HostSession {
 public:
  PackedSession(Recording recording, Arena* activations, PackedExecutor& executor)
      : HostSession(std::move(recording), activations, executor), executor_(&executor) {
    Compiler compile(executor, program(), phases_);
    for (const BoundCall& call : calls()) compile(call);
  }
  void run() override { executor_->walk_together(phases_); }

 private:
  PackedExecutor* executor_;
  Phases phases_;
};

std::unique_ptr<Session> PackedExecutor::open(Recording recording, Arena* activations) {
  return std::make_unique<PackedSession>(std::move(recording), activations, *this);
}

// Items of the loop wait for each other at the barrier, so each is taken by a thread of its own.
void PackedExecutor::walk_together(const Phases& phases) {
  queue().pool().parallel_for(queue().pool().threads(), [&](int64_t rank) { walk(phases, static_cast<int>(rank)); });
  if (!failed_.exchange(false)) return;
  telling_.clear();
  std::rethrow_exception(std::exchange(error_, nullptr));
}

// A thread that fails goes on to the barriers, where the others wait for it.
void PackedExecutor::walk(const Phases& phases, int rank) {
  const PhaseShare share{rank, queue().pool().threads(), digits_[static_cast<size_t>(rank)]};
  for (size_t i = 0; i < phases.list.size(); ++i) {
    const Phase& phase = phases.list[i];
    if ((phase.shared || rank == 0) && !failed_.load(std::memory_order_relaxed)) {
      try {
        phase.work(share);
      } catch (...) {
        keep_error();
      }
    }
    if (phase.shared || i + 1 == phases.list.size() || phases.list[i + 1].shared) barrier_.wait();
  }
}

void PackedExecutor::keep_error() {
  if (!telling_.test_and_set()) error_ = std::current_exception();
  failed_.store(true, std::memory_order_relaxed);
}

}  // namespace fairway
