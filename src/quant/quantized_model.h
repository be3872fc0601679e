// What quantizing makes and the artifact stores: integers with a half-precision scale per row, and perhaps a factor per column,
// for the large matrices, halves for the rest (scoring spec §4.1, §4.2). Banks are cut into their layers' matrices; a tensor is
// named by its bank and slice.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/shape/parameter_row.h"
#include "recipe/recipe.h"

namespace fairway {

enum class TensorCoding : uint8_t { integer_rows, half, single };

inline constexpr int64_t kUsualLowRankGroup = 64;

// W += A·B with small integer factors (scoring spec §4.10). Absent when rank is 0.
struct LowRankCorrection {
  int64_t rank = 0;
  int64_t group = kUsualLowRankGroup;
  std::vector<int8_t> a;          // (rows, rank), int2 in [-2, 1]
  uint16_t a_scale = 0;           // half
  std::vector<int8_t> b;          // (rank, cols), int4 in [-8, 7]
  std::vector<uint16_t> b_scale;  // half, one per `group` consecutive elements of b
  int64_t groups(int64_t cols) const { return (rank * cols + group - 1) / group; }
  bool operator==(const LowRankCorrection&) const = default;
};

struct QuantizedTensor {
  ParamId bank = ParamId::embed_token;
  int64_t slice = -1;  // index on the bank's first axis; -1: the whole parameter
  int64_t rows = 0, cols = 0;
  TensorCoding coding = TensorCoding::half;
  int bits = 0;                 // integer_rows: 2 … 8; values lie in [-R, R], R = 2^(bits-1) - 1
  bool trellis = false;         // integer_rows: down a column q follow a trellis (base/trellis.h)
  std::vector<int8_t> q;        // integer_rows: (rows, cols)
  std::vector<uint16_t> scale;  // integer_rows: half, one per row
  std::vector<int8_t> columns;  // integer_rows: classes of steps (step_factors.h), one per column; empty: all alike
  std::vector<uint16_t> halves;
  std::vector<float> singles;
  LowRankCorrection correction;

  int64_t count() const { return rows * cols; }
  bool operator==(const QuantizedTensor&) const = default;
};

inline constexpr int kMostColumnClass = 24;
inline constexpr int largest_level(int bits) { return (1 << (bits - 1)) - 1; }

struct QuantizedModel {
  ModelRecipe model;                 // the architecture, which fixes every shape
  bool looped = false;               // depth recurrence was on at the end of training
  std::string tokenizer;             // one of the tokenizer's Vocabulary::names(), hexadecimal; may be empty
  std::string tokenizer_model = {};  // the tokenizer's own file, where the artifact carries it; may be empty
  std::string recipe_hash;           // of the run's recipe, likewise
  int64_t train_length = 0;          // data.seq_len of the run: what scoring takes when nothing else is asked; 0: not known
  int64_t segment = 0;               // data.max_segment of a run on packed documents, inside which it is scored; 0: across them
  std::vector<QuantizedTensor> tensors;  // in the order of parameter_table(), slices ascending
  bool operator==(const QuantizedModel&) const = default;
};
inline int64_t segment_of(const Recipe& recipe) { return packs_documents(recipe) ? recipe.data.max_segment : 0; }

}  // namespace fairway
