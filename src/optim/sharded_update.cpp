#include "optim/sharded_update.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "comm/tree.h"

namespace fairway {
namespace {

size_t float_bytes(int64_t elements) { return align_up(static_cast<size_t>(elements) * sizeof(float)); }

size_t received_bytes(const GradientLayout& layout) {
  size_t bytes = float_bytes(layout.pack);
  for (const ShardedBank& bank : layout.matrices) bytes += float_bytes(bank.padded);
  return bytes;
}

Tensor flat_part(const Tensor& whole, int64_t offset, int64_t elements) {
  return make_view(whole.as<float>() + offset, {{elements}, DType::f32});
}

// What the ranks sent, added in the tree's order; the sum ends in the first piece, which is returned.
Tensor record_sum(Tape& tape, const Tensor& received, int ranks) {
  const int64_t piece = received.numel() / ranks;
  const auto at = [&](int64_t rank) {
    return tape.input("from " + std::to_string(rank), flat_part(received, rank * piece, piece));
  };
  for (const auto& [to, from] : tree_additions(ranks)) tape.call(AccumulateScaled{}, {at(to), at(from), Var{}});
  return flat_part(received, 0, piece);
}

}  // namespace

ShardedUpdate::ShardedUpdate(const Recipe& recipe, const GradientLayout& layout, const Tensor& mean, Communicator& comm,
                             const UpdateInputs& inputs)
    : comm_(&comm), state_("optimizer", state_bytes(layout)), received_("received gradients", received_bytes(layout)) {
  banks_.reserve(layout.matrices.size());
  for (const ShardedBank& place : layout.matrices) record_bank(recipe, place, mean, inputs);
  record_pack(recipe, layout, mean, inputs);
}

size_t ShardedUpdate::state_bytes(const GradientLayout& layout) const {
  size_t bytes = 0;
  for (const ShardedBank& bank : layout.matrices) bytes += float_bytes(bank.shard * bank.matrix());
  for (const Place& place : layout.replicated) bytes += 2 * float_bytes(place.bank->value.numel());
  return bytes;
}

void ShardedUpdate::record_bank(const Recipe& recipe, const ShardedBank& place, const Tensor& mean,
                                const UpdateInputs& inputs) {
  const std::string& name = place.bank->info.name;
  Bank bank{.place = &place, .full = flat_part(mean, place.offset, place.padded)};
  bank.received = received_.make("received " + name, bank.full.spec);
  bank.momentum = state_.make("momentum " + name, {place.shard_shape(), DType::f32});
  Tape work;
  work.scope(name);
  const Tensor shard = record_sum(work, bank.received, comm_->size());
  const Var update =
      record_muon_update(work, recipe.optim.matrix, name, shard.reshaped(place.shard_shape()), bank.momentum, inputs);
  work.keep(update);
  bank.work = std::make_unique<BoundProgram>(std::move(work).finish());
  bank.update = bank.work->tensor(update.id);
  Tape apply;
  apply.scope(name);
  const Tensor gathered = flat_part(bank.full, 0, place.shape.numel()).reshaped(place.shape);
  record_muon_apply(apply, recipe.optim.matrix, name, place.bank->value.reshaped(place.shape),
                    apply.input("update " + name, gathered), inputs);
  bank.apply = std::make_unique<BoundProgram>(std::move(apply).finish());
  banks_.push_back(std::move(bank));
}

void ShardedUpdate::record_pack(const Recipe& recipe, const GradientLayout& layout, const Tensor& mean,
                                const UpdateInputs& inputs) {
  pack_ = flat_part(mean, layout.pack_offset, layout.pack);
  pack_received_ = received_.make("received pack", pack_.spec);
  Tape sum;
  pack_shard_ = record_sum(sum, pack_received_, comm_->size());
  pack_sum_ = std::make_unique<BoundProgram>(std::move(sum).finish());
  Tape adamw;
  for (const Place& place : layout.replicated) {
    const ParamBank& bank = *place.bank;
    const AdamState state{state_.make("m " + bank.info.name, bank.value.spec),
                          state_.make("v " + bank.info.name, bank.value.spec)};
    adam_[bank.info.name] = state;
    adamw.scope(bank.info.name);
    const Tensor gradient = flat_part(mean, place.offset, bank.value.numel()).reshaped(bank.value.spec.shape);
    record_adamw(adamw, recipe.optim, bank, gradient, state, inputs);
  }
  adamw_ = std::make_unique<BoundProgram>(std::move(adamw).finish());
}

// The pack goes second: AdamW then fills the time until the largest bank has come.
void ShardedUpdate::start_exchanges() {
  const auto start = [&](Bank& bank) { bank.request = comm_->start_exchange(bank.full, bank.received); };
  if (!banks_.empty()) start(banks_.front());
  if (pack_.numel() > 0) pack_request_ = comm_->start_exchange(pack_, pack_received_);
  for (size_t i = 1; i < banks_.size(); ++i) start(banks_[i]);
}

void ShardedUpdate::run(Executor& executor) {
  start_exchanges();
  if (pack_.numel() > 0) {
    comm_->wait(pack_request_);
    executor.run(*pack_sum_);
    comm_->wait(comm_->start_all_gather(pack_shard_, pack_));
    executor.run(*adamw_);
  }
  const auto finish = [&](Bank& bank) {
    comm_->wait(bank.request);
    executor.run(*bank.apply);
  };
  for (size_t i = 0; i < banks_.size(); ++i) {
    comm_->wait(banks_[i].request);
    executor.run(*banks_[i].work);
    comm_->progress();
    banks_[i].request = comm_->start_all_gather(banks_[i].update, banks_[i].full);
    if (i > 0) finish(banks_[i - 1]);
  }
  if (!banks_.empty()) finish(banks_.back());
}

const ShardedUpdate::Bank& ShardedUpdate::bank(const std::string& name) const {
  const auto found =
      std::find_if(banks_.begin(), banks_.end(), [&](const Bank& bank) { return bank.place->bank->info.name == name; });
  FAIRWAY_ASSERT(found != banks_.end(), "no matrix bank '" + name + "'");
  return *found;
}

// Between steps the mean's buffer is free: it carries the state.
void ShardedUpdate::gather_momentum(const std::string& name, const Tensor& full) {
  const Bank& at = bank(name);
  comm_->wait(comm_->start_all_gather(at.momentum, at.full));
  if (comm_->root()) std::memcpy(full.data, at.full.data, full.spec.bytes());
}

void ShardedUpdate::take_momentum(const std::string& name, const Tensor& full) {
  const Bank& at = bank(name);
  const int64_t real = at.place->shape.numel(), shard = at.momentum.numel();
  if (comm_->root()) std::memcpy(at.full.data, full.data, full.spec.bytes());
  std::memset(at.full.as<float>() + real, 0, static_cast<size_t>(at.full.numel() - real) * sizeof(float));
  comm_->broadcast(flat_part(at.full, 0, real));
  std::memcpy(at.momentum.data, at.full.as<float>() + comm_->rank() * shard, at.momentum.spec.bytes());
}

}  // namespace fairway
