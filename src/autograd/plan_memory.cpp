// Offsets for planned values: each lives from the call that first touches it to the last; the largest are placed first, each at
// the lowest offset that is free for its whole life (greedy by size, within a few percent of the lower bound on our programs).
#include <algorithm>
#include <numeric>

#include "autograd/tape.h"
#include "tensor/arena.h"

namespace fairway {
namespace {

struct Block {
  size_t first, last;  // calls
  size_t bytes;
  size_t* offset;
};

size_t place(std::vector<Block>& blocks) {
  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return blocks[a].bytes > blocks[b].bytes; });
  std::vector<const Block*> placed;  // by offset
  size_t total = 0;
  for (size_t index : order) {
    Block& block = blocks[index];
    size_t offset = 0;
    for (const Block* other : placed) {
      if (other->last < block.first || block.last < other->first) continue;
      if (offset + block.bytes <= *other->offset) break;
      offset = std::max(offset, *other->offset + other->bytes);
    }
    *block.offset = offset;
    total = std::max(total, offset + block.bytes);
    const auto where =
        std::upper_bound(placed.begin(), placed.end(), offset, [](size_t o, const Block* b) { return o < *b->offset; });
    placed.insert(where, &block);
  }
  return total;
}

}  // namespace

void plan_memory(Program& program) {
  constexpr size_t kNever = SIZE_MAX;
  std::vector<size_t> first(program.values.size(), kNever), last(program.values.size(), 0);
  for (size_t i = 0; i < program.calls.size(); ++i) {
    const Call& call = program.calls[i];
    for (const auto* list : {&call.in, &call.out, &call.saved, &call.dout, &call.din}) {
      for (int32_t id : *list) {
        if (id == kNoValue) continue;
        first[static_cast<size_t>(id)] = std::min(first[static_cast<size_t>(id)], i);
        last[static_cast<size_t>(id)] = i;
      }
    }
  }
  for (const ObservePoint& point : program.observed) {
    size_t& until = last[static_cast<size_t>(point.value)];
    until = std::max(until, point.call);
  }
  for (int32_t id : program.kept) last[static_cast<size_t>(id)] = program.calls.size();
  std::vector<Block> blocks;
  for (size_t id = 0; id < program.values.size(); ++id) {
    Value& value = program.values[id];
    if (value.place != Value::Place::planned || first[id] == kNever) continue;
    blocks.push_back({first[id], last[id], align_up(value.spec.bytes()), &value.offset});
  }
  for (size_t i = 0; i < program.calls.size(); ++i) {
    Call& call = program.calls[i];
    if (call.workspace_bytes > 0) blocks.push_back({i, i, align_up(call.workspace_bytes), &call.workspace_offset});
  }
  program.arena_bytes = place(blocks);
}

}  // namespace fairway
