// Row-major matrix products by cuBLASLt: D = alpha·op(A)·op(B) + beta·C. bf16 or float operands, float accumulation; float
// products use no TF32. Algorithms come from cuBLASLt's heuristics and are kept by shape; the same shape always runs the same
// one, so results repeat bit for bit.
#pragma once

#include <array>
#include <map>

#include "ops/cuda/context.h"
#include "ops/product_layout.h"

namespace fairway::cuda {

struct Product {
  ProductLayout layout = ProductLayout::nt;
  int64_t m = 0, n = 0, k = 0;
  DType in = DType::f32;   // of A and B
  DType out = DType::f32;  // of C and D
  const void* a = nullptr;
  const void* b = nullptr;
  const void* c = nullptr;  // read when beta is not 0
  void* d = nullptr;
  float alpha = 1, beta = 0;
  int64_t batch = 1, stride_a = 0, stride_b = 0, stride_c = 0, stride_d = 0;  // elements between the matrices of a batch
  int64_t lda = 0, ldb = 0, ldc = 0, ldd = 0;                                 // elements between rows; 0: dense, C as D
  bool any_batch = false;  // the bits of a matrix must not depend on how many stand beside it: ranks share banks
};

class Gemms {
 public:
  explicit Gemms(KernelPath path);
  ~Gemms();
  Gemms(const Gemms&) = delete;
  Gemms& operator=(const Gemms&) = delete;
  void run(const Product& product, cudaStream_t stream);
  // From now on the bits of a row must not depend on how many rows there are: algorithms are those of usual numbers of them.
  void keep_rows_alike(bool on) { rows_alike_ = on; }

 private:
  struct Plan;
  using Key = std::array<int64_t, 19>;
  const Plan& plan_for(const Product& product);
  bool choose(const Product& product, int alignment, cublasLtMatmulAlgo_t& algorithm) const;
  bool fits(const Plan& plan) const;
  bool chosen_for_any(const Product& product, int alignment, bool any_rows, Plan& plan) const;
  KernelPath path_;
  cublasLtHandle_t handle_ = nullptr;
  bool rows_alike_ = false;
  Buffer workspace_;
  std::map<Key, std::unique_ptr<Plan>> plans_;
};

// Dense products over whole tensors; the output's accumulate flag becomes beta = 1.
void multiply(Scratch& scratch, ProductLayout layout, const Tensor& a, const Tensor& b, const Tensor& d);

}  // namespace fairway::cuda
