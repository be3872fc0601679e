// Cases of the ops that quantizing is made of.
#include "ops/op_case.h"

namespace fairway::ops_test {

std::vector<OpCase<HessianAccumulate>> cases(const HessianAccumulate&) {
  std::vector<OpCase<HessianAccumulate>> list;
  for (const int64_t columns : {1, 2, 7, 17, 33, 130})
    for (const int64_t rows : {1, 3, 64})
      list.push_back({{}, {uniform_f64({columns, columns}, -1, 1), uniform({rows, columns})}});
  list.push_back({{}, {uniform_f64({5, 5}, -1, 1), uniform({2100, 5})}});  // several pieces of rows
  return list;
}

// Random entries are positive definite once the diagonal is heavy enough, and are not without it.
std::vector<OpCase<CholeskyInverse>> cases(const CholeskyInverse&) {
  std::vector<OpCase<CholeskyInverse>> list;
  for (const int64_t side : {1, 2, 3, 17, 31, 32, 33, 64, 70, 131})
    for (const double damping : {2.0 * static_cast<double>(side), -1.5})
      list.push_back({{.damping = damping}, {uniform_f64({side, side}, -1, 1), uniform({side, side}), uniform_f64({1}, 0, 1)}});
  return list;
}

// Blocks of few columns: a random triangle, unlike GPTQ's, multiplies rounding errors from column to column.
std::vector<OpCase<GptqBlock>> cases(const GptqBlock&) {
  std::vector<OpCase<GptqBlock>> list;
  const auto add = [&list](int64_t rows, int64_t columns, int64_t begin, int64_t end) {
    list.push_back({{.begin = begin, .end = end, .levels = 15},
                    {uniform({rows, columns}), uniform({columns, columns}, 0.5, 1.0), uniform({rows}, 0.05, 0.1),
                     uniform({rows, end - begin + 1}), uniform_f64({rows}, 0, 1), absent()}});
  };
  // By a trellis; rows beyond one start of it. Columns are few, since one path taken otherwise changes all that follow.
  for (const int64_t rows : {1, 2, 7, 64, 128, 129, 300})
    for (const int64_t columns : {1, 3})
      list.push_back({{.begin = 0, .end = columns, .levels = 15, .trellis = true},
                      {uniform({rows, columns}), uniform({columns, columns}, 0.5, 1.0), uniform({rows}, 0.05, 0.2),
                       uniform({rows, columns}), uniform_f64({rows}, 0, 1), absent()}});
  // Rows that make up for each other, in one weight or in several; few columns for the same reason.
  for (const auto& [side, weights] : std::vector<std::pair<int64_t, int64_t>>{{1, 3}, {7, 1}, {33, 2}, {128, 2}, {150, 1}})
    for (const bool trellis : {false, true})
      for (const int64_t columns : {1, 3}) {
        const int64_t rows = side * weights;
        list.push_back({{.begin = 0, .end = std::min<int64_t>(columns, 2), .levels = 31, .trellis = trellis},
                        {uniform({rows, columns}), uniform({columns, columns}, 0.5, 1.0), uniform({rows}, 0.05, 0.2),
                         uniform({rows, columns}), uniform_f64({rows}, 0, 1), factor(side)}});
      }
  for (const int64_t rows : {1, 5, 64})
    for (const int64_t columns : {1, 4, 19, 65}) {
      add(rows, columns, 0, std::min<int64_t>(columns, 4));
      if (columns > 8) add(rows, columns, 3, 8);
      if (columns > 8) add(rows, columns, columns - 2, columns);
    }
  return list;
}

}  // namespace fairway::ops_test
