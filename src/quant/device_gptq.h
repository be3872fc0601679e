// GPTQ's heavy loops where the queue works with a device: recorded programs over memory of their own, kept by shape, so that
// the blocks of a weight follow each other there and only weights, factor and integers travel.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <span>

#include "autograd/executor.h"

namespace fairway {

class DeviceGptq {
 public:
  explicit DeviceGptq(Executor& executor) : executor_(&executor) {}

  // CholeskyInverse of `matrix` (C, C); false when it is not positive definite.
  bool factorize(std::span<const double> matrix, int64_t side, double damping, std::span<float> upper);

  struct Weight {
    int64_t rows, cols, block;
    int32_t levels;
    std::span<const float> upper, steps;  // (C, C), (R)
    std::span<const float> rates;         // (C, levels + 1): by a trellis; empty: rounded one by one
    std::span<float> work;                // (R, C): becomes the integers
    std::span<double> losses;             // (R), written
  };
  void quantize(const Weight& weight);  // every block of columns in turn

 private:
  struct Factoring;
  struct Upper;
  struct Blocks;
  const Tensor& send_upper(const Weight& weight);
  Executor* executor_;
  std::map<int64_t, std::shared_ptr<Factoring>> factoring_;               // by side
  std::map<int64_t, std::shared_ptr<Upper>> uppers_;                      // by columns
  std::map<std::array<int64_t, 5>, std::shared_ptr<Blocks>> quantizing_;  // by rows, columns, block, levels, trellis
};

}  // namespace fairway
