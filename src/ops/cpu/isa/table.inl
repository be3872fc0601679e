// Gathers the kernels of one instruction set; included last, inside that set's namespace.
// The order matters: later files use earlier ones.
// clang-format off
#include "ops/cpu/isa/simd.inl"
#include "ops/cpu/isa/math.inl"
#include "ops/cpu/isa/gemm_pack.inl"
#include "ops/cpu/isa/gemm.inl"
#include "ops/cpu/isa/attention_forward.inl"
#include "ops/cpu/isa/attention_backward.inl"
#include "ops/cpu/isa/peak.inl"
#include "ops/cpu/isa/columns.inl"
#include "ops/cpu/isa/norm.inl"
#include "ops/cpu/isa/mix.inl"
#include "ops/cpu/isa/smear.inl"
#include "ops/cpu/isa/heads.inl"
#include "ops/cpu/isa/attention_cached.inl"
#include "ops/cpu/isa/update.inl"
#include "ops/cpu/isa/loss.inl"
#include "ops/cpu/isa/quant.inl"
// clang-format on

template <class... Ops>
constexpr void set_rows(OpRowKernelList<Ops...>& rows) {
  ((static_cast<OpRowKernel<Ops>&>(rows) = {forward_rows, backward_rows}), ...);
}

constexpr KernelTable make_table(const char* name) {
  KernelTable t;
  t.name = name;
  t.lanes = kLanes;
  t.gemm.mr = kMr;
  t.gemm.nr = kNr;
  t.gemm.max_k = kMaxK;
  t.gemm.a_panel = kMr * kRowStride;
  t.gemm.pack_a_rows = pack_a_rows;
  t.gemm.pack_a_columns = pack_a_columns;
  t.gemm.pack_b_rows = pack_b_rows;
  t.gemm.pack_b_columns = pack_b_columns;
  t.gemm.block = gemm_block;
  t.math.exp = map<exp_of>;
  t.math.sigmoid = map<sigmoid_of>;
  t.math.tanh = map<tanh_of>;
  t.attention.queries = kQueries;
  t.attention.cached = attention_cached;
  t.attention.forward = attention_forward;
  t.attention.backward = attention_backward;
  t.rows.copy = copy_row;
  t.rows.add = add_row;
  t.rows.dot = dot_row;
  set_rows(t.op_rows);
  t.update = {update_adamw, update_blend, update_momentum, sum_squares, scaled_row};
  t.loss = {softcap_row, expectation_of_row, softcap_row_grad};
  t.quant = {gptq_rows, gptq_trellis, gptq_two_sided, subtract_product};
  t.fma_burst = fma_burst;
  return t;
}
