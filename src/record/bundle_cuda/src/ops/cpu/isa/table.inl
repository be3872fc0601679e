// Of the kernels of one instruction set those that ops/cpu/executor.cpp needs beside a device.
// clang-format off
#include "ops/cpu/isa/simd.inl"
#include "ops/cpu/isa/math.inl"
#include "ops/cpu/isa/gemm_pack.inl"
#include "ops/cpu/isa/gemm.inl"
#include "ops/cpu/isa/peak.inl"
#include "ops/cpu/isa/columns.inl"
#include "ops/cpu/isa/quant.inl"
// clang-format on

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
  t.quant = {gptq_rows, gptq_trellis, subtract_product};
  t.fma_burst = fma_burst;
  return t;
}
