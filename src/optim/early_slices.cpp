#include "optim/early_slices.h"

#include <cstdint>

namespace fairway {

EarlySlices::EarlySlices(std::vector<Bank> banks, Executor& executor, Communicator& comm)
    : banks_(std::move(banks)), executor_(&executor), comm_(&comm) {
  for (size_t bank = 0; bank < banks_.size(); ++bank) {
    for (int64_t matrix = 0; matrix < banks_[bank].place->shape[0]; ++matrix) slices_.push_back({bank, matrix});
  }
}

Tensor EarlySlices::gradient_of(const Slice& slice) const {
  const ShardedBank& place = *banks_[slice.bank].place;
  return place.bank->grad.part(slice.matrix * place.matrix(), {place.matrix()});
}

std::vector<std::vector<size_t>> EarlySlices::finished_by(const Program& program) const {
  constexpr size_t kNever = SIZE_MAX;
  std::vector<size_t> last(slices_.size(), kNever);
  const auto touch = [&](int32_t id, size_t call) {
    const Slot* written = program.slot_of(id);
    if (written == nullptr || written->kind != Slot::Kind::gradient) return;
    for (size_t i = 0; i < slices_.size(); ++i) {
      const bool whole = written->param.slice < 0;
      if (banks_[slices_[i].bank].place->bank->number == written->param.bank &&
          (whole || written->param.slice == slices_[i].matrix))
        last[i] = call;
    }
  };
  for (size_t call = 0; call < program.calls.size(); ++call) {
    for (int32_t id : program.calls[call].din) touch(id, call);
  }
  std::vector<std::vector<size_t>> out(program.calls.size());
  for (size_t i = 0; i < slices_.size(); ++i) {
    if (last[i] != kNever) out[last[i]].push_back(i);
  }
  return out;
}

void EarlySlices::start(Slice& slice) {
  const Bank& bank = banks_[slice.bank];
  const int64_t shard = bank.place->shard, size = bank.place->matrix();
  const auto owner = static_cast<int>(slice.matrix / shard);
  Tensor all;
  if (comm_->rank() == owner) {  // its place in each piece
    const int64_t first = slice.matrix % shard * size;
    all = executor_->resident(bank.received.part(first, {bank.received.numel() - first}));
  }
  comm_->name_next(bank.place->bank->info.name + "[" + std::to_string(slice.matrix) + "]");
  slice.request = comm_->start_gather(executor_->resident(gradient_of(slice)), all, shard * size, owner);
  slice.started = true;
}

void EarlySlices::run(Session& passes) {
  auto& schedule = schedules_[&passes];
  if (schedule.empty()) schedule = finished_by(passes.program());
  passes.run_told([&](size_t call) {
    for (size_t i : schedule[call]) start(slices_[i]);
    comm_->progress();
  });
}

void EarlySlices::start_rest() {
  for (Slice& slice : slices_) {
    if (!slice.started) start(slice);
  }
}

void EarlySlices::wait_for(size_t bank) {
  for (Slice& slice : slices_) {
    if (slice.bank != bank) continue;
    comm_->wait(slice.request);
    slice.started = false;
  }
}

}  // namespace fairway
