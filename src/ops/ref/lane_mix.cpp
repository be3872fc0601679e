// lane_d' = resid[d]·lane_d + post[0][d]·attn + post[1][d]·mlp (spec §5.2); gradients in spec §6.11.
#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {

void forward(const LaneMix&, const Forward<LaneMix>& f) {
  with_dtype(f.in.lane0, [&]<class T>() {
    const Values<T> lane0(f.in.lane0), lane1(f.in.lane1), attn(f.in.attn), mlp(f.in.mlp), resid(f.in.resid), post(f.in.post);
    const Target<T> out0(f.out.lane0), out1(f.out.lane1);
    for (int64_t i = 0; i < f.in.lane0.numel(); ++i) {
      out0.put(i, resid[0] * lane0[i] + post[0] * attn[i] + post[2] * mlp[i]);
      out1.put(i, resid[1] * lane1[i] + post[1] * attn[i] + post[3] * mlp[i]);
    }
  });
}

void backward(const LaneMix&, const Backward<LaneMix>& b) {
  with_dtype(b.in.lane0, [&]<class T>() {
    const Values<T> lane0(b.in.lane0), lane1(b.in.lane1), attn(b.in.attn), mlp(b.in.mlp), resid(b.in.resid), post(b.in.post);
    const Values<T> g0(b.dout.lane0), g1(b.dout.lane1);
    const Target<T> dlane0(b.din.lane0), dlane1(b.din.lane1), dattn(b.din.attn), dmlp(b.din.mlp);
    const Target<T> dresid(b.din.resid), dpost(b.din.post);
    const int64_t count = b.in.lane0.numel();
    for (int64_t i = 0; i < count; ++i) {
      dlane0.put(i, resid[0] * g0[i]);
      dlane1.put(i, resid[1] * g1[i]);
      dattn.put(i, post[0] * g0[i] + post[1] * g1[i]);
      dmlp.put(i, post[2] * g0[i] + post[3] * g1[i]);
    }
    dresid.put(0, sum(count, [&](int64_t i) { return g0[i] * lane0[i]; }));
    dresid.put(1, sum(count, [&](int64_t i) { return g1[i] * lane1[i]; }));
    dpost.put(0, sum(count, [&](int64_t i) { return g0[i] * attn[i]; }));
    dpost.put(1, sum(count, [&](int64_t i) { return g1[i] * attn[i]; }));
    dpost.put(2, sum(count, [&](int64_t i) { return g0[i] * mlp[i]; }));
    dpost.put(3, sum(count, [&](int64_t i) { return g1[i] * mlp[i]; }));
  });
}

}  // namespace fairway::ref
