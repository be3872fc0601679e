#include "audit/broken_mask.h"

#include <cmath>

namespace fairway {
namespace {

struct Heads {
  const Attention& op;
  const float *q, *k, *v;
  float *z, *lse;  // (M, H·E), (M, H)
  int64_t size;    // E
};

// Adds the next token's key and value to what leaves one head of row m.
void look_ahead(const Heads& heads, int64_t m, int64_t h) {
  const int64_t size = heads.size, kv = h / (heads.op.heads / heads.op.kv_heads);
  const float* q = heads.q + (m * heads.op.heads + h) * size;
  const float* k = heads.k + ((m + 1) * heads.op.kv_heads + kv) * size;
  const float* v = heads.v + ((m + 1) * heads.op.kv_heads + kv) * size;
  float* z = heads.z + (m * heads.op.heads + h) * size;
  float& lse = heads.lse[m * heads.op.heads + h];
  double score = 0;
  for (int64_t e = 0; e < size; ++e) score += static_cast<double>(q[e]) * static_cast<double>(k[e]);
  score *= heads.op.scale;
  const double old = static_cast<double>(lse), most = std::max(old, score);
  const double sum = most + std::log(std::exp(old - most) + std::exp(score - most));
  const auto keep = static_cast<float>(std::exp(old - sum)), add = static_cast<float>(std::exp(score - sum));
  for (int64_t e = 0; e < size; ++e) z[e] = keep * z[e] + add * v[e];
  lse = static_cast<float>(sum);
}

}  // namespace

void BrokenMaskExecutor::run_call(const BoundCall& call) {
  honest_->run_call(call);
  const auto* op = std::get_if<Attention>(&call.call->op);
  if (!op || call.call->backward) return;
  const auto in = to_args<Attention::In>(call.in);
  const Tensor z = to_args<Attention::Out>(call.out).z, lse = to_args<Attention::Saved>(call.saved).lse;
  const int64_t rows = z.rows();
  const Heads heads{*op,           in.q.as<float>(), in.k.as<float>(),    in.v.as<float>(),
                    z.as<float>(), lse.as<float>(),  z.cols() / op->heads};
  for (int64_t m = 0; m + 1 < rows; ++m) {
    if ((m + 1) % op->row_length == 0) continue;  // the last of its sequence
    for (int64_t h = 0; h < op->heads; ++h) look_ahead(heads, m, h);
  }
}

}  // namespace fairway
