// The MLP's two fused products by CUTLASS: warp-specialised cooperative kernels of 128 × 256 × 64 with the activation as an
// epilogue visitor tree; clusters as lab/mlp found them best. act_grad is never stored: the epilogue keeps pre and rebuilds the
// slope.
#include <cutlass/cutlass.h>
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/epilogue/fusion/sm90_callbacks_tma_warpspecialized.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>
#include <cutlass/util/packed_stride.hpp>

#include "base/error.h"
#include "ops/cuda/mlp_fused.h"

namespace fairway::cuda {
namespace {

using Half = cutlass::bfloat16_t;
using Tile = cute::Shape<cute::_128, cute::_256, cute::_64>;
using Row = cutlass::layout::RowMajor;
using Column = cutlass::layout::ColumnMajor;
using Schedule = cutlass::epilogue::TmaWarpSpecializedCooperative;
constexpr auto kRound = cutlass::FloatRoundStyle::round_to_nearest;
constexpr int kAlignment = 8;

// acc ⊙ slope(pre).
template <class T>
struct MultiplySlope {
  CUTLASS_HOST_DEVICE T operator()(T const& acc, T const& pre) const { return acc * (pre > T(0) ? T(2) * pre : T(0.5f) * pre); }
};
template <class T, int N>
struct MultiplySlope<cutlass::Array<T, N>> {
  CUTLASS_HOST_DEVICE cutlass::Array<T, N> operator()(cutlass::Array<T, N> const& acc, cutlass::Array<T, N> const& pre) const {
    cutlass::Array<T, N> out;
    MultiplySlope<T> one;
    CUTLASS_PRAGMA_UNROLL
    for (int i = 0; i < N; ++i) out[i] = one(acc[i], pre[i]);
    return out;
  }
};

// The activation of pre as it is stored.
template <class T>
struct LeakySquare {
  CUTLASS_HOST_DEVICE T operator()(T const& acc) const {
    const T pre = static_cast<T>(Half(acc)), leaky = pre > T(0) ? pre : T(0.5f) * pre;
    return leaky * leaky;
  }
};
template <class T, int N>
struct LeakySquare<cutlass::Array<T, N>> {
  CUTLASS_HOST_DEVICE cutlass::Array<T, N> operator()(cutlass::Array<T, N> const& acc) const {
    cutlass::Array<T, N> out;
    LeakySquare<T> one;
    CUTLASS_PRAGMA_UNROLL
    for (int i = 0; i < N; ++i) out[i] = one(acc[i]);
    return out;
  }
};

namespace detail = cutlass::epilogue::collective::detail;
namespace fusion = cutlass::epilogue::fusion;
using Descriptor = detail::EpilogueDescriptor<Tile, cutlass::epilogue::collective::EpilogueTileAuto, Half, Half, Schedule>;
using Load = detail::AuxLoadDescriptor<Descriptor, Row, Half>;
using Store = detail::AuxStoreDescriptor<Descriptor, Row, Half>;

using DownTree =
    fusion::Sm90EVT<fusion::Sm90Compute<MultiplySlope, Half, float, kRound>, fusion::Sm90AccFetch,
                    fusion::Sm90AuxLoad<Load::Stages, typename Descriptor::EpilogueTile, Half, typename Load::Stride,
                                        typename Load::SmemLayoutAtom, typename Load::CopyOpS2R>>;
using UpTree = fusion::Sm90EVT<
    fusion::Sm90Compute<LeakySquare, Half, float, kRound>,
    fusion::Sm90EVT<fusion::Sm90AuxStore<Store::Stages, typename Descriptor::EpilogueTile, Half, kRound, typename Store::Stride,
                                         typename Store::SmemLayoutAtom, typename Store::CopyOpR2S>,
                    fusion::Sm90AccFetch>>;

template <class LayoutB, class Cluster, class Tree>
struct Fused {
  using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster, cutlass::epilogue::collective::EpilogueTileAuto,
      float, float, void, Row, kAlignment, Half, Row, kAlignment, Schedule, Tree>::CollectiveOp;
  using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Half, Row, kAlignment, Half, LayoutB, kAlignment, float, Tile,
      Cluster, cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(sizeof(typename Epilogue::SharedStorage))>,
      cutlass::gemm::KernelTmaWarpSpecializedCooperative>::CollectiveOp;
  using Kernel = cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Mainloop, Epilogue>;
  using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

  static void run(Scratch& scratch, const Tensor& a, const Tensor& b, const Tensor& d, int n,
                  const typename Tree::Arguments& tree) {
    const int m = static_cast<int>(a.rows()), k = static_cast<int>(a.cols());
    const auto stride_a = cutlass::make_cute_packed_stride(typename Kernel::StrideA{}, cute::make_shape(m, k, 1));
    const auto stride_b = cutlass::make_cute_packed_stride(typename Kernel::StrideB{}, cute::make_shape(n, k, 1));
    const auto stride_d = cutlass::make_cute_packed_stride(typename Kernel::StrideD{}, cute::make_shape(m, n, 1));
    cutlass::KernelHardwareInfo hardware;
    hardware.sm_count = scratch.context().processors();
    typename Gemm::Arguments arguments{cutlass::gemm::GemmUniversalMode::kGemm,
                                       {m, n, k, 1},
                                       {reinterpret_cast<Half*>(a.data), stride_a, reinterpret_cast<Half*>(b.data), stride_b},
                                       {tree, nullptr, stride_d, reinterpret_cast<Half*>(d.data), stride_d},
                                       hardware};
    Gemm gemm;
    void* workspace = scratch.take<std::byte>(static_cast<int64_t>(Gemm::get_workspace_size(arguments)) + 1);
    if (gemm.initialize(arguments, workspace, scratch.stream()) != cutlass::Status::kSuccess ||
        gemm.run(scratch.stream()) != cutlass::Status::kSuccess)
      throw WorkError("the fused MLP product of " + std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k) +
                      " could not start");
  }
};

bool suits(const Tensor& rows, int64_t hidden) {
  return rows.spec.dtype == DType::bf16 && rows.rows() >= 1024 && rows.cols() % 64 == 0 && hidden % 8 == 0;
}

auto stride_of(const Tensor& t) {
  return cutlass::make_cute_packed_stride(cute::Stride<int64_t, cute::_1, int64_t>{},
                                          cute::make_shape(static_cast<int>(t.rows()), static_cast<int>(t.cols()), 1));
}

}  // namespace

bool fused_up(Scratch& scratch, const Tensor& m, const Tensor& up, const Tensor& pre, const Tensor& post) {
  if (!suits(m, up.rows())) return false;
  Fused<Column, cute::Shape<cute::_1, cute::_1, cute::_1>, UpTree>::run(
      scratch, m, up, post, static_cast<int>(up.rows()), {{{}, {reinterpret_cast<Half*>(pre.data), stride_of(pre)}}, {}});
  return true;
}

bool fused_down_gradient(Scratch& scratch, const Tensor& g, const Tensor& down, const Tensor& pre, const Tensor& dpre) {
  if (!suits(g, down.cols())) return false;
  Fused<Row, cute::Shape<cute::_2, cute::_1, cute::_1>, DownTree>::run(
      scratch, g, down, dpre, static_cast<int>(down.cols()),
      {{}, {reinterpret_cast<Half*>(pre.data), Half(0), stride_of(pre)}, {}});
  return true;
}

}  // namespace fairway::cuda
