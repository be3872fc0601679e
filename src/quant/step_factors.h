// Steps by column and by row. With one step for a whole tensor GPTQ spends as many bits on a weight whose error hardly counts
// as on one whose error counts most. With ℓ² the diagonal of the Cholesky factor of the inputs' Hessian, an error in a column
// costs ℓ² of its square once later columns have made up for what they can; and an error in a row costs as much as the loss
// depends on that row's outputs. Steps in inverse proportion save ½·log2(mean ℓ²/geometric mean ℓ²) bits a weight at the same
// cost, and as much for rows (WaterSIC). Factors are 2^(class/4): of a column stored as its class, of a row part of its scale.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "quant/grid.h"
#include "quant/quantized_model.h"

namespace fairway {

struct GptqFactor;

inline constexpr int kStepClassesAnOctave = 4;
float step_factor(int8_t step_class);  // the same bits on every machine
std::vector<float> step_factors(std::span<const int8_t> classes);

// ½·log2(mean ℓ²/geometric mean ℓ²): bits a weight. Columns that are never read do not count.
double column_gain(const GptqFactor& factor);
double mean_log_length(const GptqFactor& factor);  // of log2 ℓ, over columns that are read
// Of each column; empty where they save less than storing them takes.
std::vector<int8_t> column_classes(const GptqFactor& factor);
// From here on the factor is that of inputs times their columns' factors, for weights divided by them.
void take_column_steps(GptqFactor& factor);

// Of each row, from how much the loss depends on it (tensor_moments.h); empty where they save less than storing them takes.
std::vector<int8_t> row_classes(std::span<const float> dependence);

// A weight in units of its tensor's step: rows and columns divided by their factors. Empty classes divide nothing.
class DividedWeight {
 public:
  DividedWeight(MatrixView w, std::span<const int8_t> rows, std::span<const int8_t> columns, ThreadPool& pool);
  MatrixView view() const { return divided_.empty() ? whole_ : MatrixView{divided_.data(), whole_.rows, whole_.cols}; }

 private:
  MatrixView whole_;
  std::vector<float> divided_;
};

}  // namespace fairway
