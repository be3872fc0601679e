// The memory plan of random programs: what is alive at the same time never overlaps, and sharing memory changes no result.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "autograd/tape.h"
#include "backends/backends.h"
#include "base/rng.h"
#include "tensor/arena.h"

namespace fairway {
namespace {

// Memory of the caller: parameters of two widths with their gradients, and the incoming gradient.
struct Externals {
  std::vector<std::vector<float>> memory;
  Tensor make(Shape shape, double size) {
    Rng rng(memory.size() + 1);
    memory.emplace_back(static_cast<size_t>(shape.numel()));
    for (float& value : memory.back()) value = static_cast<float>(size * rng.normal());
    return make_view(memory.back().data(), {shape, DType::f32});
  }
};

Recording random_program(uint64_t seed, Externals& externals) {
  Rng rng(seed);
  Tape tape;
  std::vector<std::vector<Var>> pools(2);  // by shape
  const Shape shapes[] = {{4, 6}, {10, 33}};
  Var gates[2];
  for (size_t s = 0; s < 2; ++s) {
    for (int i = 0; i < 2; ++i)
      pools[s].push_back(tape.param({static_cast<int32_t>(10 * s) + i}, fmt::format("p{}{}", s, i),
                                    externals.make(shapes[s], 1), externals.make(shapes[s], 0)));
    gates[s] = tape.param({static_cast<int32_t>(10 * s) + 9}, fmt::format("gate{}", s), externals.make({shapes[s][1]}, 1),
                          externals.make({shapes[s][1]}, 0));
  }
  const auto count = 5 + rng.below(30);
  for (uint64_t i = 0; i < count; ++i) {
    const size_t s = rng.below(2);
    const auto any = [&] { return pools[s][rng.below(pools[s].size())]; };
    std::vector<Var> made;
    switch (rng.below(5)) {
      case 0: made = {tape.one(Add{}, {any(), any()})}; break;
      case 1: made = {tape.one(RmsNorm{}, {any()})}; break;
      case 2: made = {tape.one(LaneMerge{}, {any(), any()})}; break;
      case 3: made = {tape.one(Skip{}, {any(), any(), gates[s], rng.below(2) ? gates[s] : Var{}})}; break;
      default: made = {tape.one(SmearGate{.row_length = 2}, {any(), gates[s]})}; break;
    }
    pools[s].push_back(made[0]);
    if (rng.below(8) == 0) tape.keep(made[0]);
    if (rng.below(8) == 0) tape.observe(fmt::format("v{}", i), any());
  }
  const size_t s = pools[0].size() > 2 ? 0 : 1;
  const Var loss = pools[s].back();
  tape.keep(loss);
  return std::move(tape).finish(loss, tape.input("d loss", externals.make(shapes[s], 1)));
}

struct Piece {
  std::string what;
  size_t first, last, offset, bytes;
};

// Every planned value and workspace with its life, found here once more from the calls alone.
std::vector<Piece> pieces(const Program& program) {
  std::vector<Piece> out;
  for (size_t id = 0; id < program.values.size(); ++id) {
    const Value& value = program.values[id];
    if (value.place != Value::Place::planned) continue;
    size_t first = SIZE_MAX, last = 0;
    const auto touch = [&](size_t call) { first = std::min(first, call), last = std::max(last, call); };
    for (size_t i = 0; i < program.calls.size(); ++i) {
      const Call& call = program.calls[i];
      for (const auto* list : {&call.in, &call.out, &call.saved, &call.dout, &call.din})
        if (std::count(list->begin(), list->end(), static_cast<int32_t>(id)) > 0) touch(i);
    }
    if (first == SIZE_MAX) continue;
    if (std::count(program.kept.begin(), program.kept.end(), static_cast<int32_t>(id)) > 0) touch(program.calls.size());
    for (const ObservePoint& point : program.observed)
      if (point.value == static_cast<int32_t>(id)) touch(point.call);
    out.push_back({value.name, first, last, value.offset, value.spec.bytes()});
  }
  for (size_t i = 0; i < program.calls.size(); ++i) {
    const Call& call = program.calls[i];
    if (call.workspace_bytes > 0) out.push_back({"workspace", i, i, call.workspace_offset, call.workspace_bytes});
  }
  return out;
}

TEST(PlanMemory, ValuesAliveTogetherNeverOverlap) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Externals externals;
    externals.memory.reserve(64);
    const Program program = random_program(seed, externals).program;
    const std::vector<Piece> all = pieces(program);
    size_t sum = 0;
    for (const Piece& a : all) {
      sum += align_up(a.bytes);
      EXPECT_LE(a.offset + a.bytes, program.arena_bytes);
      EXPECT_EQ(a.offset % kArenaAlignment, 0U);
      for (const Piece& b : all) {
        if (&a == &b || a.last < b.first || b.last < a.first) continue;
        EXPECT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset)
            << "seed " << seed << ": " << a.what << " [" << a.first << ", " << a.last << "] and " << b.what << " [" << b.first
            << ", " << b.last << "]";
      }
    }
    EXPECT_LT(program.arena_bytes, sum) << "seed " << seed << ": nothing is shared";
  }
}

// The same program with memory of its own for every value.
Recording unshared(Recording recording) {
  Program& program = recording.program;
  size_t offset = 0;
  for (Value& value : program.values) {
    if (value.place != Value::Place::planned) continue;
    value.offset = offset;
    offset += align_up(value.spec.bytes());
  }
  for (Call& call : program.calls) {
    call.workspace_offset = offset;
    offset += align_up(call.workspace_bytes);
  }
  program.arena_bytes = offset;
  return recording;
}

// Gradients, kept values and observed values after a run over poisoned memory.
std::vector<float> results(const Recording& recording) {
  const Program& program = recording.program;
  Arena arena("test", program.arena_bytes);
  arena.poison();
  for (size_t slot = 0; slot < program.slots.size(); ++slot) {
    const Tensor& memory = recording.bindings.at(static_cast<int32_t>(slot));
    if (program.slots[slot].kind == Slot::Kind::gradient) std::memset(memory.data, 0, memory.spec.bytes());
  }
  Queue queue(1);
  const auto executor = make_ref_executor(queue);
  const auto session = executor->open(recording, &arena);
  std::vector<float> out;
  const auto take = [&](const Tensor& t) { out.insert(out.end(), t.as<float>(), t.as<float>() + t.numel()); };
  session->run([&](std::string_view, const Tensor& value) { take(value); });
  for (size_t slot = 0; slot < program.slots.size(); ++slot) take(recording.bindings.at(static_cast<int32_t>(slot)));
  for (int32_t id : program.kept) take(session->fetch(id));
  return out;
}

TEST(PlanMemory, SharingChangesNoResult) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Externals externals;
    externals.memory.reserve(64);
    const Recording recording = random_program(seed, externals);
    const std::vector<float> shared = results(recording), apart = results(unshared(recording));
    EXPECT_EQ(shared, apart) << "seed " << seed;
    for (float value : shared) ASSERT_TRUE(std::isfinite(value)) << "seed " << seed;  // nothing reads what was not written
  }
}

}  // namespace
}  // namespace fairway
