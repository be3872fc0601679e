#include "quant/device_gptq.h"

#include <algorithm>
#include <cstring>

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
  explicit Upper(int64_t cols)
      : memory("GPTQ factor", places({{{cols, cols}, DType::f32}})), factor(memory.make("factor", {{cols, cols}, DType::f32})) {
    std::fill_n(factor.as<float>(), factor.numel(), 0.0F);  // of no matrix: its diagonal is positive
  }
  Arena memory;
  Tensor factor;
};

// Often the one of the call before (Q, K and V; every step that is tried): comparing takes a third of the time of sending.
const Tensor& DeviceGptq::send_upper(const Weight& w) {
  std::shared_ptr<Upper>& place = uppers_[w.cols];
  if (!place) place = std::make_shared<Upper>(w.cols);
  if (std::memcmp(place->factor.data, w.upper.data(), w.upper.size_bytes()) != 0) {
    fill<float>(place->factor, w.upper);
    executor_->upload(place->factor);
  }
  return place->factor;
}

struct DeviceGptq::Blocks {
  Blocks(const Weight& w, const Tensor& factor, Executor& executor)
      : memory("GPTQ", places({{{w.rows, w.cols}, DType::f32},
                               {{w.rows}, DType::f32},
                               {{w.rows, w.block}, DType::f32},
                               {{w.rows}, DType::f64},
                               {{static_cast<int64_t>(w.rates.size())}, DType::f32}})),
        work(memory.make("work", {{w.rows, w.cols}, DType::f32})),
        scale(memory.make("scale", {{w.rows}, DType::f32})),
        error(memory.make("error", {{w.rows, w.block}, DType::f32})),
        loss(memory.make("loss", {{w.rows}, DType::f64})) {
    if (!w.rates.empty()) rate = memory.make("rate", {{w.cols, w.levels + 1}, DType::f32});
    Tape tape;
    for (int64_t begin = 0; begin < w.cols; begin += w.block)
      tape.call(GptqBlock{.begin = begin, .end = std::min(begin + w.block, w.cols), .levels = w.levels},
                {tape.input("work", work), tape.input("factor", factor), tape.input("scale", scale), tape.input("error", error),
                 tape.input("loss", loss), rate ? tape.input("rate", rate) : Var{}});
    session = executor.open(std::move(tape).finish());
  }
  Arena memory;
  Tensor work, scale, error, loss, rate;
  std::unique_ptr<Session> session;
};

void DeviceGptq::quantize(const Weight& w) {
  std::shared_ptr<Blocks>& blocks = quantizing_[{w.rows, w.cols, w.block, w.levels, w.rates.empty() ? 0 : 1}];
  const Tensor& factor = send_upper(w);
  if (!blocks) blocks = std::make_shared<Blocks>(w, factor, *executor_);
  fill<float>(blocks->work, w.work);
  fill<float>(blocks->scale, w.steps);
  std::fill_n(blocks->loss.as<double>(), w.rows, 0.0);
  for (const Tensor& input : {blocks->work, blocks->scale, blocks->loss}) executor_->upload(input);
  if (blocks->rate) {
    fill<float>(blocks->rate, w.rates);
    executor_->upload(blocks->rate);
  }
  blocks->session->run();
  executor_->download(blocks->work);
  executor_->download(blocks->loss);
  read(blocks->work, w.work);
  read(blocks->loss, w.losses);
}

}  // namespace fairway
