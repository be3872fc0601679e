// cuBLASLt's own candidates for the products of pr1105's step: microseconds of each, in the order its heuristic gives them.
//   lab/build products && build/lab/products
#include <cublasLt.h>

#include <cstdio>

#include "lab/lab.cuh"

using namespace fairway;

namespace {

struct Product {
  const char* what;
  cublasOperation_t first, second;  // in columns: D (n, m) = first (n, k) · second (k, m)
  int64_t m, n, k;
  bool float_out, add;
};

void measure(lab::Lab& lab, cublasLtHandle_t handle, void* workspace, size_t workspace_bytes, const Product& p) {
  cublasLtMatmulDesc_t operation;
  cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &p.first, sizeof(p.first));
  cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSB, &p.second, sizeof(p.second));
  const bool ft = p.first == CUBLAS_OP_T, st = p.second == CUBLAS_OP_T;
  cublasLtMatrixLayout_t a, b, d;
  cublasLtMatrixLayoutCreate(&a, CUDA_R_16BF, ft ? p.k : p.n, ft ? p.n : p.k, ft ? p.k : p.n);
  cublasLtMatrixLayoutCreate(&b, CUDA_R_16BF, st ? p.m : p.k, st ? p.k : p.m, st ? p.m : p.k);
  cublasLtMatrixLayoutCreate(&d, p.float_out ? CUDA_R_32F : CUDA_R_16BF, p.n, p.m, p.n);
  lab::Array x = lab.random({p.n, p.k}, 1), y = lab.random({p.m, p.k}, 2);
  lab::Array out({p.m, p.n}, p.float_out ? DType::f32 : DType::bf16);
  cublasLtMatmulPreference_t preference;
  cublasLtMatmulPreferenceCreate(&preference);
  cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes, sizeof(size_t));
  cublasLtMatmulHeuristicResult_t found[16];
  int count = 0;
  cublasLtMatmulAlgoGetHeuristic(handle, operation, a, b, d, d, preference, 16, found, &count);
  const float alpha = 1, beta = p.add ? 1 : 0;
  std::printf("%-28s %6lld x %5lld x %6lld:", p.what, (long long)p.m, (long long)p.n, (long long)p.k);
  double best = 1;
  for (int i = 0; i < count; ++i) {
    const double s = lab.time(
        [&] {
          cublasLtMatmul(handle, operation, &alpha, x.buffer.data(), a, y.buffer.data(), b, &beta, out.buffer.data(), d,
                         out.buffer.data(), d, &found[i].algo, workspace, workspace_bytes, lab.context.stream());
        },
        5, 10);
    best = std::min(best, s);
    std::printf(" %.1f", s * 1e6);
  }
  std::printf("  (best %.0f TFLOP/s)\n", 2e-12 * double(p.m) * double(p.n) * double(p.k) / best);
}

}  // namespace

int main() {
  lab::Lab lab;
  cublasLtHandle_t handle;
  cublasLtCreate(&handle);
  const size_t bytes = size_t{64} << 20;
  cuda::Buffer workspace(bytes);
  const int64_t M = 98304;
  const auto N = CUBLAS_OP_N, T = CUBLAS_OP_T;
  for (const Product& p : {Product{"qkv", T, N, M, 1024, 512, false, false},
                           {"output + residual", T, N, M, 512, 512, false, true},
                           {"up", T, N, M, 1536, 512, false, false},
                           {"down + residual", T, N, M, 512, 1536, false, true},
                           {"d qkv input", N, N, M, 512, 1024, false, false},
                           {"d output input", N, N, M, 512, 512, false, false},
                           {"d hidden", N, N, M, 1536, 512, false, false},
                           {"d mlp input", N, N, M, 512, 1536, false, false},
                           {"gradient of qkv", N, T, 1024, 512, M, true, false},
                           {"gradient of output", N, T, 512, 512, M, true, false},
                           {"gradient of down", N, T, 512, 1536, M, true, false},
                           {"gradient of up", N, T, 1536, 512, M, true, true}})
    measure(lab, handle, workspace.data(), bytes, p);
}
