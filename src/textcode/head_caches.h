// Keys and values of one call of attention as numbers of 16 bits, for all rows and kv heads; and what heads need while they
// attend.
#pragma once

#include <vector>

#include "tensor/arena.h"
#include "textcode/exact_kernels.h"

namespace fairway::textcode {

class HeadCaches {
 public:
  struct Shape {
    int64_t heads = 0, size = 0, length = 0;  // of all rows; channels of one; positions
    int64_t padded() const { return (size + 15) / 16 * 16; }
    int64_t room() const { return (length + 15) / 16 * 16; }
  };
  explicit HeadCaches(const Shape& shape);

  const Shape& shape() const { return shape_; }
  void place(int64_t head, AttendArgs& a) const;
  static size_t head_bytes(const Shape& shape);  // of one

 private:
  Shape shape_;
  Memory memory_;
  float most_key_;
};

// One place for each row and kv head, large enough for every call.
class HeadScratch {
 public:
  void fit(int64_t heads, int64_t group, const HeadCaches::Shape& shape);
  void place(int64_t head, AttendArgs& a);

 private:
  std::vector<std::vector<float>> floats_;
};

}  // namespace fairway::textcode
