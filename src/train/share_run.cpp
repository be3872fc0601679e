#include "train/share_run.h"

#include <array>
#include <cstring>

namespace fairway {
namespace {

struct Header {
  int64_t found = 0, step = 0, snapshots = 0, loader_bytes = 0;
  int64_t looped = 0, fake_quant = 0, unwritten = 0;
  double elapsed = 0, next_step = 0;
};

template <class T>
Tensor bytes_of(T* data, size_t count) {
  return make_view(data, {{static_cast<int64_t>(count * sizeof(T))}, DType::u8});
}

}  // namespace

std::optional<RunState> load_on_all(const std::filesystem::path& folder, Trainer& trainer, const RunIdentity& run) {
  Communicator& comm = trainer.comm();
  std::optional<RunState> state;
  if (comm.root()) state = load_checkpoint(folder, trainer, run);
  if (!comm.shares_updates()) return state;
  Header header;
  if (state)
    header = {1,
              state->step,
              state->snapshots,
              static_cast<int64_t>(state->loader.size()),
              state->stage.looped,
              state->stage.fake_quant,
              static_cast<int64_t>(state->unwritten.size()),
              state->elapsed,
              state->next_step};
  comm.broadcast(bytes_of(&header, 1));
  if (header.found == 0) return std::nullopt;
  if (!state) {
    state = RunState{.step = header.step,
                     .elapsed = header.elapsed,
                     .next_step = header.next_step,
                     .stage = {header.looped != 0, header.fake_quant != 0},
                     .snapshots = header.snapshots};
    state->loader.resize(static_cast<size_t>(header.loader_bytes));
    if (header.unwritten > 0) state->unwritten[""];  // the lines are rank 0's; that there are some is everybody's
  }
  comm.broadcast(bytes_of(state->loader.data(), state->loader.size()));
  comm.broadcast(trainer.params().flat_values());
  if (trainer.averager().ema()) comm.broadcast(trainer.averager().ema());
  if (trainer.averager().swa()) comm.broadcast(trainer.averager().swa());
  trainer.averager().restore_snapshots(state->snapshots);
  trainer.optimizer().share_state();
  return state;
}

Verdict agree(Communicator& comm, const Verdict& mine) {
  if (comm.size() == 1) return mine;
  const double root = comm.root() ? 1 : 0;
  std::array<double, 4> told{root * mine.elapsed, root * mine.next_step, mine.stop ? 1.0 : 0, mine.checkpoint ? root : 0};
  comm.all_reduce(told);
  return {.elapsed = told[0], .next_step = told[1], .stop = told[2] > 0, .checkpoint = told[3] > 0};
}

}  // namespace fairway
