// Steps by column. GPTQ with one step for a whole tensor spends as many bits on a column whose error hardly counts as on one
// whose error counts most. With ℓ² the diagonal of the Cholesky factor of the inputs' Hessian, an error in a column costs ℓ² of
// its square once later columns have made up for what they can; steps in inverse proportion to ℓ save
// ½·log2(mean ℓ²/geometric mean ℓ²) bits a weight at the same error (WaterSIC). A column's step is the row's times 2^(class/4).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "quant/grid.h"
#include "quant/quantized_model.h"

namespace fairway {

struct GptqFactor;

inline constexpr int kColumnClassesAnOctave = 4;
float column_factor(int8_t column_class);  // the same bits on every machine
std::vector<float> column_factors(std::span<const int8_t> classes);

// ½·log2(mean ℓ²/geometric mean ℓ²): bits a weight. Columns that are never read do not count.
double column_gain(const GptqFactor& factor);
// Of each column; empty where they save less than storing them takes.
std::vector<int8_t> column_classes(const GptqFactor& factor);
// From here on the factor is that of inputs times their columns' factors, for weights divided by them.
void take_column_steps(GptqFactor& factor);

// A weight as GPTQ rounds it: with each column divided by its factor, or as it is where the factor has none.
class DividedWeight {
 public:
  DividedWeight(MatrixView w, const GptqFactor* factor, ThreadPool& pool);  // null: as it is
  MatrixView view() const { return divided_.empty() ? whole_ : MatrixView{divided_.data(), whole_.rows, whole_.cols}; }

 private:
  MatrixView whole_;
  std::vector<float> divided_;
};

}  // namespace fairway
