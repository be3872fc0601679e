#include "quant/device_gptq.h"

#include <algorithm>

#include "autograd/tape.h"
#include "base/error.h"

namespace fairway {
namespace {

size_t places(std::initializer_list<Spec> specs) {
  size_t bytes = 0;
  for (const Spec& spec : specs) bytes += align_up(spec.bytes());
  return bytes;
}

template <class T>
void fill(const Tensor& to, std::span<const T> from) {
  FAIRWAY_ASSERT(to.numel() == static_cast<int64_t>(from.size()), "numbers of another count than their tensor's");
  std::copy(from.begin(), from.end(), to.as<T>());
}
template <class T>
void read(const Tensor& from, std::span<T> to) {
  std::copy_n(from.as<T>(), to.size(), to.begin());
}

}  // namespace

struct DeviceGptq::Factoring {
  explicit Factoring(int64_t side)
      : memory("factor", places({{{side, side}, DType::f64}, {{side, side}, DType::f32}, {{1}, DType::f64}})),
        matrix(memory.make("matrix", {{side, side}, DType::f64})),
        factor(memory.make("factor", {{side, side}, DType::f32})),
        status(memory.make("status", {{1}, DType::f64})) {}
  Arena memory;
  Tensor matrix, factor, status;
};

bool DeviceGptq::factorize(std::span<const double> matrix, int64_t side, double damping, std::span<float> upper) {
  std::shared_ptr<Factoring>& place = factoring_[side];
  if (!place) place = std::make_shared<Factoring>(side);
  fill(place->matrix, matrix);
  executor_->upload(place->matrix);
  Tape tape;  // damping is part of the op, so each has a program of its own
  tape.call(CholeskyInverse{.damping = damping},
            {tape.input("matrix", place->matrix), tape.input("factor", place->factor), tape.input("status", place->status)});
  executor_->open(std::move(tape).finish())->run();
  executor_->download(place->status);
  if (*place->status.as<double>() != 1) return false;
  executor_->download(place->factor);
  read(place->factor, upper);
  return true;
}

struct DeviceGptq::Upper {
  explicit Upper(int64_t side)
      : memory("GPTQ factor", places({{{side, side}, DType::f32}})),
        factor(memory.make("factor", {{side, side}, DType::f32})) {}
  Arena memory;
  Tensor factor;
  uint64_t number = 0;  // of the one it holds; none has 0
};

DeviceGptq::Upper& DeviceGptq::upper_of(Uppers& uppers, int64_t side) {
  std::shared_ptr<Upper>& place = uppers[side];
  if (!place) place = std::make_shared<Upper>(side);
  return *place;
}

void DeviceGptq::send(Uppers& uppers, int64_t side, const Factor& factor) {
  Upper& place = upper_of(uppers, side);
  if (place.number == factor.number) return;
  fill(place.factor, factor.upper);
  executor_->upload(place.factor);
  place.number = factor.number;
}

struct DeviceGptq::Blocks {
  Blocks(const Form& form, const Tensor& factor, const Tensor& outputs, Executor& executor)
      : memory("GPTQ", places({{{form.rows, form.cols}, DType::f32},
                               {{form.rows}, DType::f32},
                               {{form.rows, form.block}, DType::f32},
                               {{form.rows}, DType::f64}})),
        work(memory.make("work", {{form.rows, form.cols}, DType::f32})),
        scale(memory.make("scale", {{form.rows}, DType::f32})),
        error(memory.make("error", {{form.rows, form.block}, DType::f32})),
        loss(memory.make("loss", {{form.rows}, DType::f64})) {
    Tape tape;
    for (int64_t begin = 0; begin < form.cols; begin += form.block)
      tape.call(
          GptqBlock{
              .begin = begin, .end = std::min(begin + form.block, form.cols), .levels = form.levels, .trellis = form.trellis},
          {tape.input("work", work), tape.input("factor", factor), tape.input("scale", scale), tape.input("error", error),
           tape.input("loss", loss), outputs ? tape.input("outputs", outputs) : Var{}});
    session = executor.open(std::move(tape).finish());
  }
  Arena memory;
  Tensor work, scale, error, loss;
  std::unique_ptr<Session> session;
};

DeviceGptq::Blocks& DeviceGptq::blocks_of(const Form& form) {
  std::shared_ptr<Blocks>& blocks = quantizing_[form];
  if (!blocks)
    blocks = std::make_shared<Blocks>(form, upper_of(inputs_, form.cols).factor,
                                      form.outputs > 0 ? upper_of(outputs_, form.outputs).factor : Tensor{}, *executor_);
  return *blocks;
}

DeviceGptq::Memory DeviceGptq::memory(const Form& form) {
  Blocks& blocks = blocks_of(form);
  const auto rows = static_cast<size_t>(form.rows);
  return {{blocks.work.as<float>(), rows * static_cast<size_t>(form.cols)},
          {blocks.scale.as<float>(), rows},
          {blocks.loss.as<double>(), rows}};
}

void DeviceGptq::quantize(const Form& form, const Factor& inputs, const Factor& outputs) {
  send(inputs_, form.cols, inputs);
  if (form.outputs > 0) send(outputs_, form.outputs, outputs);
  Blocks& blocks = blocks_of(form);
  for (const Tensor& input : {blocks.work, blocks.scale, blocks.loss}) executor_->upload(input);
  blocks.session->run();
  executor_->download(blocks.work);
  executor_->download(blocks.loss);
}

}  // namespace fairway
