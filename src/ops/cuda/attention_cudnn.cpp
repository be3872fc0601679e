// FusedHeads by cuDNN's graph interface. The library is opened when first needed, so a program built with it runs without it.
#include <cudnn_frontend.h>
#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <map>
#include <unordered_map>

#include "base/device_error.h"
#include "ops/cuda/attention_fused.h"
#include "ops/cuda/small_tensor.h"

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;  // the frontend wants its user to hold the library
}

namespace fairway::cuda {
namespace {

namespace fe = cudnn_frontend;
enum Uid : int64_t { kQ = 1, kK, kV, kY, kStats, kDy, kDq, kDk, kDv };
using Places = std::unordered_map<int64_t, void*>;

void check(fe::error_t status, const char* what) {
  if (!status.is_good()) throw DeviceError(std::string("cuDNN: ") + what + ": " + status.get_message());
}

struct Sizes {
  int64_t batch, length, heads, kv_heads, size;
  int64_t v_pitch, dv_pitch;  // elements between rows
};

class Graph {
 public:
  Graph(cudnnHandle_t handle, const Sizes& n, float scale, bool backward) : n_(n) {
    graph_.set_io_data_type(fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    backward ? make_backward(scale) : make_forward(scale);
    check(graph_.validate(), "validate");
    check(graph_.build_operation_graph(handle), "build_operation_graph");
    check(graph_.create_execution_plans({fe::HeurMode_t::A}), "create_execution_plans");
    check(graph_.check_support(), "check_support");
    check(graph_.build_plans(), "build_plans");
    check(graph_.get_workspace_size(workspace_), "get_workspace_size");
  }
  void run(cudnnHandle_t handle, Scratch& scratch, Places& places) {
    check(graph_.execute(handle, places, scratch.take<std::byte>(workspace_ + 1)), "execute");
  }

 private:
  using Attributes = std::shared_ptr<fe::graph::Tensor_attributes>;
  // (B, heads, T, E) lying as rows of heads.
  std::vector<int64_t> dims(int64_t heads) const { return {n_.batch, heads, n_.length, n_.size}; }
  std::vector<int64_t> strides(int64_t heads, int64_t pitch) const {
    const int64_t row = pitch > 0 ? pitch : heads * n_.size;
    return {n_.length * row, n_.size, row, 1};
  }
  Attributes input(const char* name, Uid uid, int64_t heads, int64_t pitch = 0) {
    return graph_.tensor(
        fe::graph::Tensor_attributes().set_name(name).set_uid(uid).set_dim(dims(heads)).set_stride(strides(heads, pitch)));
  }
  void output(const Attributes& tensor, Uid uid, int64_t heads, int64_t pitch = 0) {
    tensor->set_output(true).set_uid(uid).set_dim(dims(heads)).set_stride(strides(heads, pitch));
  }
  std::vector<int64_t> stats_dims() const { return {n_.batch, n_.heads, n_.length, 1}; }
  std::vector<int64_t> stats_strides() const { return {n_.heads * n_.length, n_.length, 1, 1}; }

  void make_forward(float scale) {
    auto options = fe::graph::SDPA_attributes().set_name("attention").set_causal_mask(true).set_attn_scale(scale);
    options.set_generate_stats(true);
    auto [y, stats] =
        graph_.sdpa(input("q", kQ, n_.heads), input("k", kK, n_.kv_heads), input("v", kV, n_.kv_heads, n_.v_pitch), options);
    output(y, kY, n_.heads);
    stats->set_output(true).set_uid(kStats).set_data_type(fe::DataType_t::FLOAT);
    stats->set_dim(stats_dims()).set_stride(stats_strides());
  }

  void make_backward(float scale) {
    const auto stats = graph_.tensor(fe::graph::Tensor_attributes()
                                         .set_name("stats")
                                         .set_uid(kStats)
                                         .set_dim(stats_dims())
                                         .set_stride(stats_strides())
                                         .set_data_type(fe::DataType_t::FLOAT));
    auto options = fe::graph::SDPA_backward_attributes().set_name("attention backward").set_causal_mask(true);
    options.set_attn_scale(scale).set_deterministic_algorithm(true);
    auto [dq, dk, dv] =
        graph_.sdpa_backward(input("q", kQ, n_.heads), input("k", kK, n_.kv_heads), input("v", kV, n_.kv_heads, n_.v_pitch),
                             input("y", kY, n_.heads), input("dy", kDy, n_.heads), stats, options);
    output(dq, kDq, n_.heads);
    output(dk, kDk, n_.kv_heads);
    output(dv, kDv, n_.kv_heads, n_.dv_pitch);
  }

  fe::graph::Graph graph_;
  Sizes n_;
  int64_t workspace_ = 0;
};

}  // namespace

struct FusedHeads::State {
  cudnnHandle_t handle = nullptr;
  bool tried = false, told = false;
  std::map<std::array<int64_t, 8>, std::unique_ptr<Graph>> graphs;

  bool open(cudaStream_t stream) {
    if (!tried) {
      tried = true;
      try {
        fe::cudnn_dlhandle = dlopen("libcudnn.so.9", RTLD_NOW);
        if (fe::cudnn_dlhandle == nullptr) throw WorkError(dlerror());
        if (fe::detail::create_handle(&handle) != CUDNN_STATUS_SUCCESS) handle = nullptr;
        if (handle != nullptr) fe::detail::set_stream(handle, stream);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "no cuDNN (%s): attention runs on the slower built-in kernels\n", error.what());
      }
    }
    return handle != nullptr;
  }

  // Null where cuDNN has no kernel, for this device or this case.
  Graph* graph(const Attention& op, const Attention::In& in, bool backward, int64_t dv_pitch) {
    const Sizes n{in.q.rows() / op.row_length, op.row_length, op.heads, op.kv_heads,
                  in.q.cols() / op.heads,      in.v.pitch,    dv_pitch};
    const auto [place, fresh] =
        graphs.try_emplace({n.batch, n.length, n.heads, n.kv_heads, n.size, backward ? 1 : 0, n.v_pitch, n.dv_pitch});
    if (!fresh) return place->second.get();
    try {
      place->second = std::make_unique<Graph>(handle, n, static_cast<float>(op.scale), backward);
    } catch (const DeviceError& error) {
      if (!told) std::fprintf(stderr, "%s: this attention runs on the built-in kernels\n", error.what());
      told = true;
    }
    return place->second.get();
  }
};

FusedHeads::FusedHeads() : state_(std::make_unique<State>()) {}
FusedHeads::~FusedHeads() {
  if (state_->handle != nullptr) fe::detail::destroy_handle(state_->handle);
}

// Whole sequences of bf16 heads whose size and place the kernels take; short ones are not worth a graph. It may choose a kernel
// by the number of sequences.
bool FusedHeads::suits(Scratch& scratch, const Attention& op, const Attention::In& in) {
  const int64_t size = in.q.cols() / op.heads;
  return !scratch.context().rows_alike() && in.q.spec.dtype == DType::bf16 && !in.segment_start && size % 8 == 0 &&
         size <= 128 && op.row_length >= 128 && aligned_rows(in.q) && aligned_rows(in.k) && aligned_rows(in.v) &&
         state_->open(scratch.stream());
}

bool FusedHeads::forward(Scratch& scratch, const Attention& op, const Forward<Attention>& f) {
  Graph* graph = state_->graph(op, f.in, false, 0);
  if (graph == nullptr) return false;
  Places places{{kQ, f.in.q.data}, {kK, f.in.k.data}, {kV, f.in.v.data}, {kY, f.out.z.data}, {kStats, f.saved.lse.data}};
  graph->run(state_->handle, scratch, places);
  return true;
}

bool FusedHeads::backward(Scratch& scratch, const Attention& op, const Backward<Attention>& b) {
  // The kernels replace: what is added to, or not wanted, goes through scratch.
  const auto place = [&](const Tensor& wanted, const Tensor& like) {
    return wanted && !wanted.accumulate ? wanted : scratch_tensor(scratch, like.spec.shape, like.spec.dtype);
  };
  const Tensor dq = place(b.din.q, b.in.q), dk = place(b.din.k, b.in.k), dv = place(b.din.v, b.in.v);
  Graph* graph = state_->graph(op, b.in, true, dv.pitch);
  if (graph == nullptr) return false;
  Places places{{kQ, b.in.q.data},    {kK, b.in.k.data}, {kV, b.in.v.data}, {kY, b.out.z.data}, {kStats, b.saved.lse.data},
                {kDy, b.dout.z.data}, {kDq, dq.data},    {kDk, dk.data},    {kDv, dv.data}};
  graph->run(state_->handle, scratch, places);
  pass_through(scratch, dq, b.din.q);
  pass_through(scratch, dk, b.din.k);
  pass_through(scratch, dv, b.din.v);
  return true;
}

}  // namespace fairway::cuda
