// cuBLASLt's functions that src/ops/cuda calls, for the program of `make package` with CUDA: the library has 540 MB and is the
// system's. It is opened when CUDA is asked for its devices, and each function hands on to the one that was found there.
#include <cublasLt.h>
#include <dlfcn.h>

#include <type_traits>

#include "ops/cuda/device.h"

namespace {

constexpr const char* kName = "libcublasLt.so.13";
static_assert(CUBLAS_VER_MAJOR == 13, "the library's name has the number of its functions' form");

void* library() {
  static void* const opened = dlopen(kName, RTLD_NOW | RTLD_LOCAL);  // for good: it may have threads
  return opened;
}

template <class Result, class... Args>
class Found;
template <class Result, class... Args>
class Found<Result(Args...)> {
 public:
  explicit Found(const char* name)
      : function_(library() == nullptr ? nullptr : reinterpret_cast<Result (*)(Args...)>(dlsym(library(), name))) {}
  Result operator()(Args... args) const { return function_ == nullptr ? missing() : function_(args...); }

 private:
  static Result missing() {
    if constexpr (std::is_same_v<Result, const char*>)
      return "the library, or this function of it, was not found";
    else
      return CUBLAS_STATUS_NOT_INITIALIZED;
  }
  Result (*function_)(Args...);
};

}  // namespace

namespace fairway::cuda {

std::string missing_library() { return library() == nullptr ? kName : ""; }

}  // namespace fairway::cuda

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  static const Found<decltype(cublasLtCreate)> real(__func__);
  return real(handle);
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  static const Found<decltype(cublasLtDestroy)> real(__func__);
  return real(handle);
}

const char* cublasLtGetStatusString(cublasStatus_t status) {
  static const Found<decltype(cublasLtGetStatusString)> real(__func__);
  return real(status);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t of_a, const void* b, cublasLtMatrixLayout_t of_b, const void* beta,
                              const void* c, cublasLtMatrixLayout_t of_c, void* d, cublasLtMatrixLayout_t of_d,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace, size_t bytes, cudaStream_t stream) {
  static const Found<decltype(cublasLtMatmul)> real(__func__);
  return real(handle, product, alpha, a, of_a, b, of_b, beta, c, of_c, d, of_d, algorithm, workspace, bytes, stream);
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a,
                                       cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* algorithm, cublasLtMatmulHeuristicResult_t* result) {
  static const Found<decltype(cublasLtMatmulAlgoCheck)> real(__func__);
  return real(handle, product, a, b, c, d, algorithm, result);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int asked,
                                              cublasLtMatmulHeuristicResult_t results[], int* found) {
  static const Found<decltype(cublasLtMatmulAlgoGetHeuristic)> real(__func__);
  return real(handle, product, a, b, c, d, preference, asked, results, found);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* product, cublasComputeType_t compute, cudaDataType_t scale) {
  static const Found<decltype(cublasLtMatmulDescCreate)> real(__func__);
  return real(product, compute, scale);
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product) {
  static const Found<decltype(cublasLtMatmulDescDestroy)> real(__func__);
  return real(product);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  static const Found<decltype(cublasLtMatmulDescSetAttribute)> real(__func__);
  return real(product, attribute, value, bytes);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  static const Found<decltype(cublasLtMatmulPreferenceCreate)> real(__func__);
  return real(preference);
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  static const Found<decltype(cublasLtMatmulPreferenceDestroy)> real(__func__);
  return real(preference);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    size_t bytes) {
  static const Found<decltype(cublasLtMatmulPreferenceSetAttribute)> real(__func__);
  return real(preference, attribute, value, bytes);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows, uint64_t cols,
                                          int64_t leading) {
  static const Found<decltype(cublasLtMatrixLayoutCreate)> real(__func__);
  return real(layout, type, rows, cols, leading);
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  static const Found<decltype(cublasLtMatrixLayoutDestroy)> real(__func__);
  return real(layout);
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value, size_t bytes) {
  static const Found<decltype(cublasLtMatrixLayoutSetAttribute)> real(__func__);
  return real(layout, attribute, value, bytes);
}

}  // extern "C"
