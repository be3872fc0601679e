#include "optim/sharded_update.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/timeline.h"
#include "comm/tree.h"

namespace fairway {
namespace {

size_t bytes_of(int64_t elements, DType type = DType::f32) { return align_up(static_cast<size_t>(elements) * size_of(type)); }

size_t exchange_bytes(const GradientLayout& layout, int ranks) {
  size_t bytes = bytes_of(ranks * 2, DType::f64) + bytes_of(layout.rounded, DType::bf16);
  for (const Pack& pack : layout.packs) bytes += bytes_of(pack.elements, pack.sent);
  for (const ShardedBank& bank : layout.matrices)
    bytes += bytes_of(bank.padded, layout.sent) + bytes_of(bank.padded / ranks, layout.sent);
  return bytes;
}

void record_copy(Tape& tape, const Tensor& to, const Tensor& from) {
  tape.call(AccumulateScaled{.overwrite = true}, {tape.input("to", to), tape.input("from", from), Var{}});
}

}  // namespace

ShardedUpdate::ShardedUpdate(const Recipe& recipe, const GradientLayout& layout, const Gradients& gradients, Executor& executor,
                             Communicator& comm, const UpdateInputs& inputs)
    : executor_(&executor),
      comm_(&comm),
      state_("optimizer", state_bytes(layout)),
      received_("exchanged gradients", exchange_bytes(layout, comm.size())),
      clip_(gradients.raw) {
  clips_ = received_.make("clips", {{comm.size(), 2}, DType::f64});
  if (layout.rounded > 0) {
    wire_ = received_.make("wire", {{layout.rounded}, DType::bf16});
    Tape tape;
    tape.scope("gradients to bf16");
    record_copy(tape, wire_, gradients.mean.part(0, {layout.rounded}));
    narrow_ = executor.open(std::move(tape).finish());
  }
  banks_.reserve(layout.matrices.size());
  std::vector<EarlySlices::Bank> sliced;
  for (const ShardedBank& place : layout.matrices) {
    record_bank(recipe, place, gradients, inputs);
    sliced.push_back({&place, banks_.back().received});
  }
  if (gradients.raw) early_ = std::make_unique<EarlySlices>(std::move(sliced), executor, comm);
  record_packs(recipe, layout, gradients.mean, inputs);
}

// What the ranks sent, scaled if that is left to do, added in the tree's order; the sum ends in the first piece.
Tensor ShardedUpdate::record_sum(Tape& tape, const Tensor& received, const Gradients& gradients) const {
  const int64_t ranks = comm_->size(), piece = received.numel() / ranks;
  const auto at = [&](int64_t rank) {
    return tape.input("from " + std::to_string(rank), received.part(rank * piece, {piece}));
  };
  for (int64_t rank = 0; rank < ranks && gradients.raw; ++rank) {
    tape.call(AccumulateScaled{.factor = gradients.factor, .overwrite = true},
              {at(rank), at(rank), tape.input("clip of " + std::to_string(rank), clips_.slice(rank))});
  }
  for (const auto& [to, from] : tree_additions(ranks)) tape.call(AccumulateScaled{}, {at(to), at(from), Var{}});
  return received.part(0, {piece});
}

size_t ShardedUpdate::state_bytes(const GradientLayout& layout) const {
  size_t bytes = 0;
  for (const ShardedBank& bank : layout.matrices) bytes += bytes_of(bank.shard * bank.matrix());
  for (const Place& place : layout.replicated) bytes += 2 * bytes_of(place.bank->value.numel());
  return bytes;
}

void ShardedUpdate::record_bank(const Recipe& recipe, const ShardedBank& place, const Gradients& gradients,
                                const UpdateInputs& inputs) {
  const std::string& name = place.bank->info.name;
  Bank bank{.place = &place, .full = gradients.mean.part(place.offset, {place.padded})};
  bank.wire = wire_ ? wire_.part(place.offset, {place.padded}) : bank.full;
  bank.received = received_.make("received " + name, bank.wire.spec);
  bank.sent = received_.make("update " + name, {place.shard_shape(), bank.wire.spec.dtype});
  bank.momentum = state_.make("momentum " + name, {place.shard_shape(), DType::f32});
  Tape work;
  work.scope("update of " + name);
  Tensor shard = record_sum(work, bank.received, gradients);
  if (wire_) {
    const Tensor floats = bank.full.part(0, shard.spec.shape);
    record_copy(work, floats, shard);
    shard = floats;
  }
  const Var update = record_muon_update(work, recipe.optim, name, shard.reshaped(place.shard_shape()), bank.momentum, inputs);
  work.call(AccumulateScaled{.overwrite = true}, {work.input("sent", bank.sent), update, Var{}});
  bank.work = executor_->open(std::move(work).finish());
  Tape apply;
  apply.scope("weights of " + name);
  const Tensor gathered = bank.wire.part(0, {place.shape.numel()}).reshaped(place.shape);
  record_muon_apply(apply, recipe.optim.matrix, name, place.bank->value.reshaped(place.shape),
                    apply.input("update " + name, gathered), inputs);
  bank.apply = executor_->open(std::move(apply).finish());
  banks_.push_back(std::move(bank));
}

void ShardedUpdate::record_packs(const Recipe& recipe, const GradientLayout& layout, const Tensor& mean,
                                 const UpdateInputs& inputs) {
  Tape sum, adamw;
  sum.scope("sum of the packs");
  adamw.scope("AdamW");
  for (const Pack& pack : layout.packs) {
    const Tensor full = mean.part(pack.offset, {pack.elements});
    const bool narrow = pack.sent == DType::bf16;
    Replicated made{.wire = narrow ? wire_.part(pack.offset, {pack.elements}) : full};
    made.received = received_.make("received pack", made.wire.spec);
    made.shard = record_sum(sum, made.received, {});
    if (narrow) record_copy(adamw, full, made.wire);
    packs_.push_back(made);
  }
  pack_sum_ = executor_->open(std::move(sum).finish());
  for (const Place& place : layout.replicated) {
    const ParamBank& bank = *place.bank;
    const AdamState state{state_.make("m " + bank.info.name, bank.value.spec),
                          state_.make("v " + bank.info.name, bank.value.spec)};
    adam_[bank.number] = state;
    adamw.scope("AdamW of " + bank.info.name);
    const Tensor gradient = mean.part(place.offset, {bank.value.numel()}).reshaped(bank.value.spec.shape);
    record_adamw(adamw, recipe.optim, bank, gradient, state, inputs);
  }
  adamw_ = executor_->open(std::move(adamw).finish());
}

// The packs go second: AdamW then fills the time until the largest bank has come.
void ShardedUpdate::start_exchanges() {
  const auto start = [&](auto& at, const std::string& name) {
    comm_->name_next(name);
    at.request = comm_->start_exchange(executor_->resident(at.wire), executor_->resident(at.received));
  };
  const auto start_bank = [&](Bank& bank) { start(bank, bank.place->bank->info.name); };
  if (narrow_) narrow_->run();
  if (early_ && !joined()) early_->start_rest();
  if (!early_ && !banks_.empty()) start_bank(banks_.front());
  for (Replicated& pack : packs_) start(pack, "replicated");
  for (size_t i = 1; i < banks_.size() && !early_; ++i) start_bank(banks_[i]);
}

// A device's graph must end with all that forked from it: its last matrices have come before the update begins.
void ShardedUpdate::run_last(Session& passes) {
  if (!early_) return passes.run();
  comm_->follow(executor_->queue());
  if (!joined()) return early_->run(passes);
  run_graph(passes_[&passes], [&] {
    early_->run(passes);
    early_->start_rest();
    for (size_t bank = 0; bank < banks_.size(); ++bank) early_->wait_for(bank);
  });
}

// Where the host need not wait for exchanges they and the programs are one graph.
void ShardedUpdate::run() {
  comm_->follow(executor_->queue());
  if (comm_->host_waits()) return walk();
  run_graph(update_, [&] { walk(); });
}

void ShardedUpdate::run_graph(Graph& graph, const std::function<void()>& body) {
  const CommCounters before = comm_->counters();
  if (!graph.sequence) graph.sequence = executor_->open_sequence();
  if (graph.sequence->run(body))
    graph.counted = comm_->counters().since(before);
  else
    comm_->count_again(graph.counted);
}

void ShardedUpdate::update_replicated() {
  if (early_) {
    comm_->name_next("clip coefficients");
    comm_->wait(comm_->start_all_gather(executor_->resident(clip_), executor_->resident(clips_)));
  }
  if (packs_.empty()) return;
  for (const Replicated& pack : packs_) comm_->wait(pack.request);
  pack_sum_->run();
  for (const Replicated& pack : packs_) {
    comm_->name_next("replicated");
    comm_->wait(comm_->start_all_gather(executor_->resident(pack.shard), executor_->resident(pack.wire)));
  }
  const TimelineRange range("AdamW");
  adamw_->run();
}

void ShardedUpdate::await_gradient(size_t bank) {
  if (joined()) return;
  if (early_)
    early_->wait_for(bank);
  else
    comm_->wait(banks_[bank].request);
}

void ShardedUpdate::walk() {
  start_exchanges();
  update_replicated();
  const auto finish = [&](Bank& bank) {
    comm_->wait(bank.request);
    const TimelineRange range("weights");
    bank.apply->run();
  };
  for (size_t i = 0; i < banks_.size(); ++i) {
    Bank& bank = banks_[i];
    await_gradient(i);
    {
      const TimelineRange range("momentum and Newton-Schulz");
      bank.work->run();
    }
    comm_->progress();
    comm_->name_next(bank.place->bank->info.name);
    bank.request = comm_->start_all_gather(executor_->resident(bank.sent), executor_->resident(bank.wire));
    if (i > 0) finish(banks_[i - 1]);
  }
  if (!banks_.empty()) finish(banks_.back());
}

const ShardedUpdate::Bank& ShardedUpdate::state_of(const ParamBank& bank) const {
  const auto found =
      std::find_if(banks_.begin(), banks_.end(), [&](const Bank& held) { return held.place->bank->number == bank.number; });
  FAIRWAY_ASSERT(found != banks_.end(), "no matrix bank '" + bank.info.name + "'");
  return *found;
}

// Between steps the mean's buffer on the host is free: it carries the state.
void ShardedUpdate::gather_momentum(const ParamBank& bank, const Tensor& full) {
  const Bank& at = state_of(bank);
  executor_->download(at.momentum);
  comm_->wait(comm_->start_all_gather(at.momentum, at.full));
  if (comm_->root()) std::memcpy(full.data, at.full.data, full.spec.bytes());
}

void ShardedUpdate::take_momentum(const ParamBank& bank, const Tensor& full) {
  const Bank& at = state_of(bank);
  const int64_t real = at.place->shape.numel(), shard = at.momentum.numel();
  if (comm_->root()) std::memcpy(at.full.data, full.data, full.spec.bytes());
  std::memset(at.full.as<float>() + real, 0, static_cast<size_t>(at.full.numel() - real) * sizeof(float));
  comm_->broadcast(at.full.part(0, {real}));
  std::memcpy(at.momentum.data, at.full.as<float>() + comm_->rank() * shard, at.momentum.spec.bytes());
  executor_->upload(at.momentum);
}

}  // namespace fairway
