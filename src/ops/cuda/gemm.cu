#include "ops/cuda/gemm.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "base/device_error.h"

namespace fairway::cuda {
namespace {

constexpr size_t kWorkspaceBytes = size_t{64} << 20;  // split-K sums of the weight gradients
constexpr int64_t kUsualBatch = 16;                   // for which algorithms of any batch are chosen: a bank, or most of one
constexpr int64_t kUsualRows = 98304;                 // and those of any number of rows: a training step's

void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) throw DeviceError(std::string(what) + " failed: " + cublasLtGetStatusString(status));
}

cudaDataType_t cuda_type(DType type) { return type == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F; }

// Largest power of two up to 16 that divides every address: what cuBLASLt may assume.
int common_alignment(const Product& p) {
  auto bits = reinterpret_cast<uintptr_t>(p.a) | reinterpret_cast<uintptr_t>(p.b) | reinterpret_cast<uintptr_t>(p.d) |
              (p.beta != 0 ? reinterpret_cast<uintptr_t>(p.c) : 0);
  int alignment = 16;
  while (alignment > 1 && bits % static_cast<uintptr_t>(alignment) != 0) alignment /= 2;
  return alignment;
}

struct MatrixLayout {
  cublasLtMatrixLayout_t handle = nullptr;
  MatrixLayout(DType type, int64_t rows, int64_t cols, int64_t ld, int64_t batch, int64_t stride) {
    check(cublasLtMatrixLayoutCreate(&handle, cuda_type(type), static_cast<uint64_t>(rows), static_cast<uint64_t>(cols), ld),
          "cublasLtMatrixLayoutCreate");
    const auto count = static_cast<int32_t>(batch);
    check(cublasLtMatrixLayoutSetAttribute(handle, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count)), "batch");
    check(cublasLtMatrixLayoutSetAttribute(handle, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof(stride)),
          "stride");
  }
  ~MatrixLayout() { cublasLtMatrixLayoutDestroy(handle); }
  MatrixLayout(const MatrixLayout&) = delete;
};

// cuBLASLt's first proposal is not its fastest for long, narrow products of bf16. Which of its proposals is, as measured on an
// H200 with cuBLAS 13.0 at 98,304 rows (lab/products, µs of the first and of the one taken); other devices have other lists:
//   columns 1024, sum 512: 157, 142   512, 512: 103, 93 (85, 77 without a sum)   512, 1024: 147, 139
int best_proposal(const Product& p, KernelPath path) {
  if (path != KernelPath::sm90 || p.layout == ProductLayout::tn || p.in != DType::bf16 || p.out != DType::bf16 || p.m < 32768)
    return 0;
  if (p.n == 1024 && p.k == 512) return 5;
  return p.n == 512 && (p.k == 512 || p.k == 1024) ? 3 : 0;
}

int64_t dense(int64_t given, int64_t natural) { return given > 0 ? given : natural; }

}  // namespace

// cuBLASLt thinks in columns: the row-major D (m, n) is its (n, m), so B comes first.
struct Gemms::Plan {
  cublasLtMatmulDesc_t operation = nullptr;
  MatrixLayout first, second, addend, result;
  cublasLtMatmulAlgo_t algorithm{};

  explicit Plan(const Product& p)
      : first(p.in, p.layout == ProductLayout::nt ? p.k : p.n, p.layout == ProductLayout::nt ? p.n : p.k,
              dense(p.ldb, p.layout == ProductLayout::nt ? p.k : p.n), p.batch, p.stride_b),
        second(p.in, p.layout == ProductLayout::tn ? p.m : p.k, p.layout == ProductLayout::tn ? p.k : p.m,
               dense(p.lda, p.layout == ProductLayout::tn ? p.m : p.k), p.batch, p.stride_a),
        addend(p.out, p.n, p.m, dense(p.ldc, dense(p.ldd, p.n)), p.batch, p.ldc > 0 ? p.stride_c : p.stride_d),
        result(p.out, p.n, p.m, dense(p.ldd, p.n), p.batch, p.stride_d) {
    check(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
    const cublasOperation_t of_first = p.layout == ProductLayout::nt ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t of_second = p.layout == ProductLayout::tn ? CUBLAS_OP_T : CUBLAS_OP_N;
    check(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &of_first, sizeof(of_first)), "transa");
    check(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSB, &of_second, sizeof(of_second)), "transb");
  }
  ~Plan() { cublasLtMatmulDescDestroy(operation); }
  Plan(const Plan&) = delete;
};

Gemms::Gemms(KernelPath path) : path_(path), workspace_(kWorkspaceBytes) { check(cublasLtCreate(&handle_), "cublasLtCreate"); }

Gemms::~Gemms() {
  plans_.clear();
  if (handle_ != nullptr) cublasLtDestroy(handle_);
}

const Gemms::Plan& Gemms::plan_for(const Product& p) {
  const int alignment = common_alignment(p);
  const bool any_rows = rows_alike_ && p.layout != ProductLayout::tn && p.batch == 1;
  const Key key{static_cast<int64_t>(p.layout),
                p.m,
                p.n,
                p.k,
                static_cast<int64_t>(p.in),
                static_cast<int64_t>(p.out),
                p.batch,
                p.beta != 0 ? 1 : 0,
                alignment,
                p.lda,
                p.ldb,
                p.ldc,
                p.ldd,
                p.stride_a,
                p.stride_b,
                p.stride_c,
                p.stride_d,
                p.any_batch ? 1 : 0,
                any_rows ? 1 : 0};
  auto& plan = plans_[key];
  if (plan) return *plan;
  auto made = std::make_unique<Plan>(p);
  const bool for_any = p.any_batch || any_rows, chosen = for_any && chosen_for_any(p, alignment, any_rows, *made);
  if (for_any && !chosen)
    std::fprintf(stderr,
                 "cuBLASLt has no algorithm of %lld x %lld x %lld for any batch or rows: bits may depend on their number\n",
                 static_cast<long long>(p.m), static_cast<long long>(p.n), static_cast<long long>(p.k));
  Product alone = p;
  alone.any_batch = false;  // better another algorithm than none
  if (!chosen && !choose(alone, alignment, made->algorithm)) {
    throw WorkError("cuBLASLt has no product of " + std::to_string(p.batch) + " times " + std::to_string(p.m) + " x " +
                    std::to_string(p.n) + " x " + std::to_string(p.k));
  }
  plan = std::move(made);
  return *plan;
}

// The algorithm of a usual batch, or of usually many rows, if it does this one too.
bool Gemms::chosen_for_any(const Product& p, int alignment, bool any_rows, Plan& plan) const {
  Product usual = p;
  usual.any_batch = true;
  if (p.any_batch) usual.batch = kUsualBatch;
  if (any_rows) usual.m = kUsualRows;
  return choose(usual, alignment, plan.algorithm) && fits(plan);
}

bool Gemms::choose(const Product& p, int alignment, cublasLtMatmulAlgo_t& algorithm) const {
  const Plan plan(p);
  cublasLtMatmulPreference_t preference = nullptr;
  check(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
  const size_t workspace = kWorkspaceBytes;
  const auto bytes = static_cast<uint32_t>(alignment);
  cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof(workspace));
  for (const auto attribute : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    cublasLtMatmulPreferenceSetAttribute(preference, attribute, &bytes, sizeof(bytes));
  const uint32_t no_split = CUBLASLT_REDUCTION_SCHEME_NONE;  // sums of one block each, whatever the batch
  if (p.any_batch)
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &no_split, sizeof(no_split));
  const int wanted = best_proposal(p, path_);
  std::array<cublasLtMatmulHeuristicResult_t, 8> found{};
  int count = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle_, plan.operation, plan.first.handle, plan.second.handle, plan.addend.handle,
                                     plan.result.handle, preference, wanted + 1, found.data(), &count);
  cublasLtMatmulPreferenceDestroy(preference);
  algorithm = found[static_cast<size_t>(wanted < count ? wanted : 0)].algo;
  return status == CUBLAS_STATUS_SUCCESS && count > 0;
}

bool Gemms::fits(const Plan& plan) const {
  cublasLtMatmulHeuristicResult_t result{};
  const cublasStatus_t status = cublasLtMatmulAlgoCheck(handle_, plan.operation, plan.first.handle, plan.second.handle,
                                                        plan.addend.handle, plan.result.handle, &plan.algorithm, &result);
  return status == CUBLAS_STATUS_SUCCESS && result.workspaceSize <= kWorkspaceBytes;
}

void Gemms::run(const Product& p, cudaStream_t stream) {
  if (p.m == 0 || p.n == 0 || p.batch == 0) return;
  const Plan& plan = plan_for(p);
  const void* c = p.beta != 0 ? p.c : p.d;
  check(cublasLtMatmul(handle_, plan.operation, &p.alpha, p.b, plan.first.handle, p.a, plan.second.handle, &p.beta, c,
                       plan.addend.handle, p.d, plan.result.handle, &plan.algorithm, workspace_.data(), workspace_.bytes(),
                       stream),
        "cublasLtMatmul");
}

void multiply(Scratch& scratch, ProductLayout layout, const Tensor& a, const Tensor& b, const Tensor& d) {
  if (!d) return;
  scratch.context().gemms().run({.layout = layout,
                                 .m = layout == ProductLayout::tn ? a.cols() : a.rows(),
                                 .n = layout == ProductLayout::nt ? b.rows() : b.cols(),
                                 .k = layout == ProductLayout::tn ? a.rows() : a.cols(),
                                 .in = a.spec.dtype,
                                 .out = d.spec.dtype,
                                 .a = a.data,
                                 .b = b.data,
                                 .c = d.data,
                                 .d = d.data,
                                 .beta = d.accumulate ? 1.0f : 0.0f},
                                scratch.stream());
}

}  // namespace fairway::cuda
