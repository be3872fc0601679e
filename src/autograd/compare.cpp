#include "autograd/compare.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "autograd/host_executor.h"
#include "base/error.h"

namespace fairway {
namespace {

// A recording bound to copies of its memory; its calls are run one by one.
class Replica {
 public:
  Replica(const Recording& recording, Executor& executor)
      : arena_("compare", bytes(recording.program)), session_(copied(recording), nullptr, executor) {}
  const std::vector<BoundCall>& calls() { return session_.calls(); }

 private:
  static size_t bytes(const Program& program) {
    size_t total = 0;
    for (const Value& value : program.values) total += value.slot != kNoSlot ? align_up(value.spec.bytes()) : 0;
    return total;
  }
  Recording copied(Recording recording) {
    for (const Value& value : recording.program.values) {
      if (value.slot == kNoSlot) continue;
      const Tensor copy = arena_.make(value.name, value.spec);
      std::memcpy(copy.data, recording.bindings.at(value.slot).data, value.spec.bytes());
      recording.bindings.bind(value.slot, copy);
    }
    return recording;
  }
  Arena arena_;
  HostSession session_;
};

double element(const Tensor& tensor, int64_t i) {
  switch (tensor.spec.dtype) {
    case DType::f32: return static_cast<double>(reinterpret_cast<const float*>(tensor.data)[i]);
    case DType::f64: return reinterpret_cast<const double*>(tensor.data)[i];
    case DType::i32: return static_cast<double>(reinterpret_cast<const int32_t*>(tensor.data)[i]);
    default: FAIRWAY_ASSERT(false, "compare knows f32, f64 and i32 tensors");
  }
  return 0;
}

}  // namespace

double normalized_error(const Tensor& candidate, const Tensor& truth) {
  double difference = 0, norm = 0;
  for (int64_t i = 0; i < truth.numel(); ++i) {
    const double have = element(candidate, i), want = element(truth, i);
    if (!std::isfinite(have) || !std::isfinite(want)) return std::numeric_limits<double>::infinity();
    difference += (have - want) * (have - want);
    norm += want * want;
  }
  if (difference == 0) return 0;
  return norm > 0 ? difference / norm : std::numeric_limits<double>::infinity();
}

CompareResult compare(const Recording& recording, Executor& truth, Executor& candidate, double tolerance) {
  const Program& program = recording.program;
  Replica left(recording, truth), right(recording, candidate);
  CompareResult result{.calls = program.calls.size()};
  for (size_t i = 0; i < program.calls.size(); ++i) {
    const BoundCall &want = left.calls()[i], &have = right.calls()[i];
    truth.run_call(want);
    candidate.run_call(have);
    const Call& call = program.calls[i];
    const auto check = [&](const std::vector<int32_t>& ids, const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
      for (size_t k = 0; k < ids.size(); ++k) {
        if (ids[k] == kNoValue) continue;
        const double error = normalized_error(a[k], b[k]);
        result.worst = std::max(result.worst, error);
        if (!(error <= tolerance) && !result.first) {
          result.first = Divergence{
              i,    std::string(op_name(call.op)), call.label, program.values[static_cast<size_t>(ids[k])].name, call.backward,
              error};
        }
        std::memcpy(a[k].data, b[k].data, b[k].spec.bytes());
      }
    };
    if (call.backward) {
      check(call.din, have.din, want.din);
    } else {
      check(call.out, have.out, want.out);
      check(call.saved, have.saved, want.saved);
      if (call.out.empty()) check(call.in, have.in, want.in);  // plain ops update their arguments
    }
  }
  return result;
}

}  // namespace fairway
