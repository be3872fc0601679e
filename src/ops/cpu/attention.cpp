// Attention by the tiled kernels of flash.h (spec §4.6.6). They want heads of whole vectors; other head sizes go through copies
// padded with zeros, which change neither scores nor outputs.
#include <algorithm>

#include "base/error.h"
#include "ops/cpu/cpu.h"
#include "ops/cpu/flash.h"
#include "tensor/arena.h"

namespace fairway::cpu {
namespace {

constexpr int64_t kHeadStep = 8;

FlashShape shape_of(const Attention& op, const Attention::In& in) {
  const int64_t size = in.q.cols() / op.heads;
  if (size > kMaxHeadSize) {  // the sentence is only made when it is needed: a step allocates nothing
    require(false, Attention::name,
            "the cpu backend takes head sizes up to " + std::to_string(kMaxHeadSize) + ", not " + std::to_string(size));
  }
  return {.rows = in.q.rows(),
          .row_length = op.row_length,
          .heads = op.heads,
          .kv_heads = op.kv_heads,
          .head_size = (size + kHeadStep - 1) / kHeadStep * kHeadStep,
          .scale = static_cast<float>(op.scale)};
}

const int32_t* starts_of(const Attention::In& in) { return in.segment_start ? in.segment_start.as<int32_t>() : nullptr; }

// Padded copies of tensors (M, heads·E), laid out one after another.
class Padded {
 public:
  Padded(std::byte* memory, int64_t head_size, int64_t padded_size)
      : next_(reinterpret_cast<float*>(memory)), size_(head_size), padded_(padded_size) {}

  float* room(const Tensor& t) {
    float* here = next_;
    if (t) next_ += t.numel() / size_ * padded_;
    return t ? here : nullptr;
  }
  const float* copy(const Tensor& t) {
    float* here = room(t);
    for (int64_t head = 0; head < t.numel() / size_; ++head) {
      std::copy_n(t.as<float>() + head * size_, size_, here + head * padded_);
      std::fill_n(here + head * padded_ + size_, padded_ - size_, 0.0f);
    }
    return here;
  }
  void write(const float* from, const Tensor& t) const {
    if (!t) return;
    for (int64_t i = 0; i < t.numel(); ++i) {
      float& to = t.as<float>()[i];
      const float value = from[i / size_ * padded_ + i % size_];
      to = t.accumulate ? to + value : value;
    }
  }
  static size_t bytes(const FlashShape& s, int64_t q_like, int64_t kv_like) {
    return static_cast<size_t>(s.rows * s.head_size * (q_like * s.heads + kv_like * s.kv_heads)) * sizeof(float);
  }

 private:
  float* next_;
  int64_t size_, padded_;
};

void forward_padded(const Forward<Attention>& call, FlashForward args, int64_t size) {
  const size_t flash = flash_forward_workspace(args.shape);
  std::byte* scratch = call.queue->scratch(align_up(flash) + Padded::bytes(args.shape, 2, 2));
  Padded padded(scratch + align_up(flash), size, args.shape.head_size);
  args.q = padded.copy(call.in.q);
  args.k = padded.copy(call.in.k);
  args.v = padded.copy(call.in.v);
  args.y = padded.room(call.out.z);
  flash_forward(call.queue->pool(), args, scratch);
  padded.write(args.y, call.out.z);
}

void backward_padded(const Backward<Attention>& call, FlashBackward args, const Tensor& dz, int64_t size) {
  const size_t flash = flash_backward_workspace(args.shape);
  std::byte* scratch = call.queue->scratch(align_up(flash) + Padded::bytes(args.shape, 5, 4));
  Padded padded(scratch + align_up(flash), size, args.shape.head_size);
  args.q = padded.copy(call.in.q);
  args.k = padded.copy(call.in.k);
  args.v = padded.copy(call.in.v);
  args.z = padded.copy(call.out.z);
  args.dz = padded.copy(dz);
  args.dy = padded.copy(call.dout.z);
  args.dq = padded.room(call.din.q);
  args.dk = padded.room(call.din.k);
  args.dv = padded.room(call.din.v);
  args.add_dq = args.add_dk = args.add_dv = false;
  flash_backward(call.queue->pool(), args, scratch);
  padded.write(args.dq, call.din.q);
  padded.write(args.dk, call.din.k);
  padded.write(args.dv, call.din.v);
}

void attend(const Attention& op, const Forward<Attention>& call) {
  const FlashForward args{.shape = shape_of(op, call.in),
                          .q = call.in.q.as<float>(),
                          .k = call.in.k.as<float>(),
                          .v = call.in.v.as<float>(),
                          .segment_start = starts_of(call.in),
                          .y = call.out.z.as<float>(),
                          .lse = call.saved.lse.as<float>()};
  if (args.shape.rows == 0) return;
  const int64_t size = call.in.q.cols() / op.heads;
  if (size != args.shape.head_size) return forward_padded(call, args, size);
  flash_forward(call.queue->pool(), args, call.queue->scratch(flash_forward_workspace(args.shape)));
}

// The call's dout.z is dy here; dz is the result's.
void attend_back(const Attention& op, const Backward<Attention>& call, const Tensor& dz) {
  const auto gradient_of = [](const Tensor& t) { return t ? t.as<float>() : nullptr; };
  const FlashBackward args{.shape = shape_of(op, call.in),
                           .q = call.in.q.as<float>(),
                           .k = call.in.k.as<float>(),
                           .v = call.in.v.as<float>(),
                           .segment_start = starts_of(call.in),
                           .z = call.out.z.as<float>(),
                           .dz = dz.as<float>(),
                           .lse = call.saved.lse.as<float>(),
                           .dy = call.dout.z.as<float>(),
                           .dq = gradient_of(call.din.q),
                           .dk = gradient_of(call.din.k),
                           .dv = gradient_of(call.din.v),
                           .add_dq = call.din.q.accumulate,
                           .add_dk = call.din.k.accumulate,
                           .add_dv = call.din.v.accumulate};
  if (args.shape.rows == 0) return;
  const int64_t size = call.in.q.cols() / op.heads;
  if (size != args.shape.head_size) return backward_padded(call, args, dz, size);
  flash_backward(call.queue->pool(), args, call.queue->scratch(flash_backward_workspace(args.shape)));
}

}  // namespace

void forward(const Attention& op, const Forward<Attention>& call) {
  attend(op, call);
  if (op.shapes_output(call.in)) forward(op.output(), op.output_of(call));
}

void backward(const Attention& op, const Backward<Attention>& call) {
  if (!op.shapes_output(call.in)) return attend_back(op, call, call.dout.z);
  const Tensor dy = make_view(call.workspace.data, call.in.q.spec);
  backward(op.output(), op.output_of(call, dy));
  attend_back(op, op.before_output(call, dy), call.dout.z);
}

}  // namespace fairway::cpu
