// GPTQ's heavy loops where the queue works with a device: recorded programs over memory of their own, kept by shape, so that
// the blocks of a weight follow each other there and only weights, factor and integers travel.
#pragma once

#include <compare>
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

  struct Form {
    int64_t rows, cols, block;
    int32_t levels;
    bool trellis;     // else rounded one by one
    int64_t outputs;  // rows of a weight that make up for each other; 0: they do not
    auto operator<=>(const Form&) const = default;
  };
  struct Memory {
    std::span<float> work;     // (R, C): weights, become the integers
    std::span<float> steps;    // (R)
    std::span<double> losses;  // (R): added to
  };
  Memory memory(const Form& form);  // to be filled before quantize() of the same form
  struct Factor {
    std::span<const float> upper;  // (side, side)
    uint64_t number = 0;           // a factor is sent where the last one of its side had another
  };
  // Every block of columns in turn. Factors of the inputs and, where the form has them, of the outputs.
  void quantize(const Form& form, const Factor& inputs, const Factor& outputs);

 private:
  struct Factoring;
  struct Upper;
  struct Blocks;
  using Uppers = std::map<int64_t, std::shared_ptr<Upper>>;  // by side
  Upper& upper_of(Uppers& uppers, int64_t side);
  void send(Uppers& uppers, int64_t side, const Factor& factor);
  Blocks& blocks_of(const Form& form);
  Executor* executor_;
  std::map<int64_t, std::shared_ptr<Factoring>> factoring_;  // by side
  Uppers inputs_, outputs_;
  std::map<Form, std::shared_ptr<Blocks>> quantizing_;
};

}  // namespace fairway
