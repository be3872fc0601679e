// What ranks exchange is float or bf16: sums between the two, and updates that came as bf16, on a backend as on ref.
#pragma once

#include "ops/compare.h"
#include "ops/op_run.h"
#include "ops/ref_backend.h"

namespace fairway::ops_test {

// Halves of few bits, so that sums are exact before they are rounded and every backend must come to the same bits.
inline Guarded exchanged(DType type, Shape shape, int64_t offset, uint64_t seed) {
  Guarded out({shape, type}, offset);
  std::vector<double> values = content_of(uniform(shape), seed);
  for (double& value : values) value = static_cast<double>(static_cast<int64_t>(value * 4096)) / 1024;
  out.set(values);
  return out;
}

inline void check_sums_between_types(const BackendUnderTest<AccumulateScaled>& backend) {
  Queue queue(1);
  const auto run = [&](const BackendUnderTest<AccumulateScaled>& on, const AccumulateScaled& op, DType to, DType from,
                       int64_t offset) {
    const Guarded target = exchanged(to, {1003}, offset, 1), source = exchanged(from, {1003}, offset, 2);
    on.forward(op, {{target.tensor(), source.tensor(), {}}, {}, {}, {}, &queue});
    EXPECT_TRUE(target.intact());
    return target.bytes();
  };
  for (DType to : {DType::f32, DType::bf16})
    for (DType from : {DType::f32, DType::bf16})
      for (bool overwrite : {false, true})
        for (int64_t offset : {0, 1})
          for (bool round : {false, true}) {
            const AccumulateScaled op{.factor = 0.5, .overwrite = overwrite, .round = round};
            EXPECT_TRUE(run(backend, op, to, from, offset) == run(ref_backend<AccumulateScaled>(), op, to, from, offset))
                << name_of(to) << " from " << name_of(from) << (overwrite ? ", overwritten" : "") << (round ? ", rounded" : "");
          }
}

inline void check_updates_in_bf16(const BackendUnderTest<MuonApply>& backend) {
  Queue queue(1);
  const Shape bank{3, 17, 32};
  Guarded scalars({{kStepScalars}, DType::f64}, 0);
  scalars.set(content_of(step_scalars(), 1));
  const Guarded narrow = exchanged(DType::bf16, bank, 0, 3);
  Guarded wide({bank, DType::f32}, 0);
  wide.set(narrow.values());
  const auto run = [&](const BackendUnderTest<MuonApply>& on, const Guarded& o) {
    const Guarded param = exchanged(DType::f32, bank, 0, 4);
    on.forward({.learning_rate = 0.02, .weight_decay = 0.1},
               {{param.tensor(), o.tensor(), scalars.tensor()}, {}, {}, {}, &queue});
    return param;
  };
  const Guarded have = run(backend, narrow);
  EXPECT_TRUE(bit_equal(have, run(backend, wide)));
  EXPECT_TRUE(close(have, run(ref_backend<MuonApply>(), narrow), {}));
}

}  // namespace fairway::ops_test
