// Shared by the CPU kernels' tests: seeded numbers, guarded buffers, every instruction set of the machine.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "ops/cpu/isa/kernels.h"

namespace fairway::cpu {

// A block of floats between two guard bands, at an odd offset when asked: a store outside it is seen by intact().
class Guarded {
 public:
  explicit Guarded(int64_t count, int64_t offset = 0)
      : count_(count), begin_(kGuard + offset), data_(count + begin_ + kGuard, kSentinel) {}
  float* get() { return data_.data() + begin_; }
  const float* get() const { return data_.data() + begin_; }
  int64_t size() const { return count_; }
  bool intact() const {
    for (int64_t i = 0; i < static_cast<int64_t>(data_.size()); ++i) {
      if ((i < begin_ || i >= begin_ + count_) && data_[i] != kSentinel) return false;
    }
    return true;
  }

  static constexpr float kSentinel = -12345.5f;

 private:
  static constexpr int64_t kGuard = 64;
  int64_t count_, begin_;
  std::vector<float> data_;
};

inline void fill_normal(float* values, int64_t count, uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < count; ++i) values[i] = normal(engine);
}

// Sum of squared differences over sum of squared truths; NaN when either side has one.
class ErrorMeter {
 public:
  void add(double got, double truth) {
    error_ += (got - truth) * (got - truth);
    power_ += truth * truth;
  }
  // `least` is a floor for the denominator, for the few outputs whose terms happen to cancel.
  double nmse(double least = 1e-30) const { return error_ / (power_ > least ? power_ : least); }

 private:
  double error_ = 0, power_ = 0;
};

// Runs a test once per instruction set and puts the machine's own choice back.
class IsaTest : public testing::TestWithParam<const KernelTable*> {
 protected:
  void SetUp() override { use_kernels(*GetParam()); }
  void TearDown() override { use_kernels(*available_kernels().back()); }
};

inline std::string isa_test_name(const testing::TestParamInfo<const KernelTable*>& info) { return info.param->name; }

}  // namespace fairway::cpu
