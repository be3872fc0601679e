#include "generate/packed_phases.h"

#include <algorithm>

#include "base/error.h"
#include "ops/cpu/cached_heads.h"
#include "ops/cpu/isa/kernels.h"

namespace fairway::packed {
namespace {

struct Rows {
  int64_t begin, end;
};

// y[rows] = W·x for the rows of some tiles; x is in the digits already and, for corrections, as floats.
Rows multiply(const PackedMatrix& w, const float* x, const cpu::DigitVector& digits, cpu::TileRange tiles, float* y) {
  cpu::multiply(w.rows, digits, tiles, y);
  const Rows rows{tiles.begin * cpu::kTileRows, std::min(w.rows.rows, tiles.end * cpu::kTileRows)};
  for (int64_t r = 0; r < w.rank && rows.begin < rows.end; ++r) {
    const float inner = cpu::kernels().rows.dot(w.b + r * w.rows.cols, x, w.rows.cols);
    for (int64_t i = rows.begin; i < rows.end; ++i) y[i] += w.a[i * w.rank + r] * inner;
  }
  return rows;
}

Rows multiply_share(const PackedMatrix& w, const Tensor& x, const PhaseShare& share, float* y) {
  const auto* in = x.as<float>();
  share.digits.assign(in, w.rows.cols, w.columns);
  return multiply(w, in, share.digits, share.of(w.rows.row_tiles()), y);
}

// y = x + scale⊙y; without x just the second term.
void add_residual(const Tensor& x, const Tensor& scale, Rows rows, float* y) {
  const float *factor = scale.as<float>(), *from = x ? x.as<float>() : nullptr;
  for (int64_t i = rows.begin; i < rows.end; ++i) y[i] = (from ? from[i] : 0.0F) + factor[i] * y[i];
}

}  // namespace

void embed(const Forward<Embed>& call, const PackedMatrix& table) {
  const auto* tokens = call.in.tokens.as<int32_t>();
  for (int64_t m = 0; m < call.in.tokens.numel(); ++m) {
    FAIRWAY_ASSERT(tokens[m] >= 0 && tokens[m] < table.rows.rows, "a token outside of the vocabulary");
    float* y = call.out.y.as<float>() + m * table.rows.cols;
    cpu::unpack_row(table.rows, tokens[m], y);
    for (int64_t j = 0; j < table.rows.cols && table.columns != nullptr; ++j) y[j] *= table.columns[j];
    for (int64_t r = 0; r < table.rank; ++r)
      for (int64_t j = 0; j < table.rows.cols; ++j)
        y[j] += table.a[tokens[m] * table.rank + r] * table.b[r * table.rows.cols + j];
  }
}

// Each thread makes some of the columns; the backend's product would lay out all of `proj` anew for every token.
void projected_embed(const ProjectedEmbed& op, const Forward<ProjectedEmbed>& call, const PhaseShare& share) {
  const auto* tokens = call.in.tokens.as<int32_t>();
  const int64_t rows = call.in.table.dim(0), size = call.in.table.dim(1), columns = call.in.proj.dim(0);
  const float *table = call.in.table.as<float>(), *proj = call.in.proj.as<float>(), scale = *call.in.scale.as<float>();
  const cpu::TileRange own = share.of(columns);
  for (int64_t m = 0; m < call.in.tokens.numel(); ++m) {
    int64_t row = tokens[m];
    if (op.index == ProjectedEmbed::Index::bigram)
      row = m % op.row_length == 0 ? rows - 1 : bigram_row(tokens[m], tokens[m - 1], rows);
    FAIRWAY_ASSERT(row >= 0 && row < rows, "a token outside of its table");
    float* y = call.out.y.as<float>() + m * columns;
    for (int64_t n = own.begin; n < own.end; ++n)
      y[n] = scale * cpu::kernels().rows.dot(table + row * size, proj + n * size, size);
  }
}

// The rows of all three matrices are one list, shared out evenly.
void project(const Forward<QkvProject>& call, const Qkv& weights, const PhaseShare& share) {
  const auto* x = call.in.x.as<float>();
  const PackedMatrix* all[] = {weights.q, weights.k, weights.v};
  float* out[] = {call.out.q.as<float>(), call.out.k.as<float>(), call.out.v.as<float>()};
  int64_t tiles = 0, first = 0;
  for (const PackedMatrix* w : all) tiles += w->rows.row_tiles();
  const cpu::TileRange own = share.of(tiles);
  for (int i = 0; i < 3; ++i) {
    const int64_t count = all[i]->rows.row_tiles();
    const cpu::TileRange range{std::clamp<int64_t>(own.begin - first, 0, count),
                               std::clamp<int64_t>(own.end - first, 0, count)};
    first += count;
    if (i == 0 || all[i]->columns != all[i - 1]->columns) share.digits.assign(x, all[i]->rows.cols, all[i]->columns);
    multiply(*all[i], x, share.digits, range, out[i]);
  }
}

void attend(const AttentionCached& op, const Forward<AttentionCached>& call, const PhaseShare& share) {
  const cpu::TileRange heads = share.of(call.in.q.rows() * op.kv_heads);
  for (int64_t head = heads.begin; head < heads.end; ++head) cpu::attend_cached(op, call, head);
}

void project_residual(const Forward<ProjectResidual>& call, const PackedMatrix& weight, const PhaseShare& share) {
  auto* y = call.out.y.as<float>();
  add_residual(call.in.x, call.in.scale, multiply_share(weight, call.in.h, share, y), y);
}

void mlp_up(const Forward<Mlp>& call, const PackedMatrix& up, const PhaseShare& share) {
  auto* post = call.saved.post.as<float>();
  const Rows rows = multiply_share(up, call.in.m, share, post);
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    const float pre = post[i], act_grad = pre > 0 ? 2 * pre : 0.5F * pre;
    post[i] = 0.5F * act_grad * pre;
  }
}

void mlp_down(const Forward<Mlp>& call, const PackedMatrix& down, const PhaseShare& share) {
  auto* y = call.out.y.as<float>();
  add_residual(call.in.x, call.in.scale, multiply_share(down, call.saved.post, share, y), y);
}

void head(const SoftcapCrossEntropy& op, const Forward<SoftcapCrossEntropy>& call, const PackedMatrix& table,
          const PhaseShare& share) {
  auto* logits = call.saved.logits.as<float>();
  const Rows rows = multiply_share(table, call.in.x, share, logits);
  cpu::kernels().loss.softcap(logits + rows.begin, rows.end - rows.begin, static_cast<float>(op.cap));
}

}  // namespace fairway::packed
