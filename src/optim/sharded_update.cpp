#include "optim/sharded_update.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/timeline.h"
#include "comm/tree.h"

namespace fairway {
namespace {

size_t float_bytes(int64_t elements) { return align_up(static_cast<size_t>(elements) * sizeof(float)); }

size_t exchange_bytes(const GradientLayout& layout, int ranks) {
  size_t bytes = float_bytes(layout.pack) + align_up(static_cast<size_t>(ranks) * 2 * sizeof(double));
  for (const ShardedBank& bank : layout.matrices) bytes += float_bytes(bank.padded) + float_bytes(bank.padded / ranks);
  return bytes;
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
  banks_.reserve(layout.matrices.size());
  std::vector<EarlySlices::Bank> sliced;
  for (const ShardedBank& place : layout.matrices) {
    record_bank(recipe, place, gradients, inputs);
    sliced.push_back({&place, banks_.back().received});
  }
  if (gradients.raw) early_ = std::make_unique<EarlySlices>(std::move(sliced), executor, comm);
  record_pack(recipe, layout, gradients.mean, inputs);
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
  for (const ShardedBank& bank : layout.matrices) bytes += float_bytes(bank.shard * bank.matrix());
  for (const Place& place : layout.replicated) bytes += 2 * float_bytes(place.bank->value.numel());
  return bytes;
}

void ShardedUpdate::record_bank(const Recipe& recipe, const ShardedBank& place, const Gradients& gradients,
                                const UpdateInputs& inputs) {
  const std::string& name = place.bank->info.name;
  Bank bank{.place = &place, .full = gradients.mean.part(place.offset, {place.padded})};
  bank.received = received_.make("received " + name, bank.full.spec);
  bank.sent = received_.make("update " + name, {place.shard_shape(), DType::f32});
  bank.momentum = state_.make("momentum " + name, {place.shard_shape(), DType::f32});
  Tape work;
  work.scope("update of " + name);
  const Tensor shard = record_sum(work, bank.received, gradients);
  const Var update =
      record_muon_update(work, recipe.optim.matrix, name, shard.reshaped(place.shard_shape()), bank.momentum, inputs);
  work.call(AccumulateScaled{.overwrite = true}, {work.input("sent", bank.sent), update, Var{}});
  bank.work = executor_->open(std::move(work).finish());
  Tape apply;
  apply.scope("weights of " + name);
  const Tensor gathered = bank.full.part(0, {place.shape.numel()}).reshaped(place.shape);
  record_muon_apply(apply, recipe.optim.matrix, name, place.bank->value.reshaped(place.shape),
                    apply.input("update " + name, gathered), inputs);
  bank.apply = executor_->open(std::move(apply).finish());
  banks_.push_back(std::move(bank));
}

void ShardedUpdate::record_pack(const Recipe& recipe, const GradientLayout& layout, const Tensor& mean,
                                const UpdateInputs& inputs) {
  pack_ = mean.part(layout.pack_offset, {layout.pack});
  pack_received_ = received_.make("received pack", pack_.spec);
  Tape sum;
  sum.scope("sum of the pack");
  pack_shard_ = record_sum(sum, pack_received_, {});
  pack_sum_ = executor_->open(std::move(sum).finish());
  Tape adamw;
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

// The pack goes second: AdamW then fills the time until the largest bank has come.
void ShardedUpdate::start_exchanges() {
  const auto start = [&](Bank& bank) {
    comm_->name_next(bank.place->bank->info.name);
    bank.request = comm_->start_exchange(executor_->resident(bank.full), executor_->resident(bank.received));
  };
  if (early_ && !joined()) early_->start_rest();
  if (!early_ && !banks_.empty()) start(banks_.front());
  if (pack_.numel() > 0) {
    comm_->name_next("replicated");
    pack_request_ = comm_->start_exchange(executor_->resident(pack_), executor_->resident(pack_received_));
  }
  for (size_t i = 1; i < banks_.size() && !early_; ++i) start(banks_[i]);
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
  if (pack_.numel() == 0) return;
  comm_->wait(pack_request_);
  pack_sum_->run();
  comm_->name_next("replicated");
  comm_->wait(comm_->start_all_gather(executor_->resident(pack_shard_), executor_->resident(pack_)));
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
    bank.request = comm_->start_all_gather(executor_->resident(bank.sent), executor_->resident(bank.full));
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
