#include <algorithm>

#include "base/error.h"
#include "textcode/head_caches.h"

namespace fairway::textcode {

size_t HeadCaches::head_bytes(const Shape& shape) {
  return static_cast<size_t>(shape.room() * (2 * shape.padded() + 2 * static_cast<int64_t>(sizeof(float))));
}

HeadCaches::HeadCaches(const Shape& shape)
    : shape_(shape), memory_("keys and values", static_cast<size_t>(shape.heads) * head_bytes(shape)) {
  FAIRWAY_ASSERT(shape.padded() <= kMostHeadSize, "attention heads wider than there is room for");
}

void HeadCaches::place(int64_t head, AttendArgs& a) const {
  const int64_t room = shape_.room(), padded = shape_.padded();
  auto* at = reinterpret_cast<uint8_t*>(memory_.data()) + static_cast<size_t>(head) * head_bytes(shape_);
  a.size = shape_.size, a.padded = padded, a.room = room;
  a.keys = at;
  a.values = reinterpret_cast<int8_t*>(at + room * padded);
  a.key_units = reinterpret_cast<float*>(at + 2 * room * padded);
  a.value_units = a.key_units + room;
}

void HeadScratch::fit(int64_t heads, int64_t group, const HeadCaches::Shape& shape) {
  FAIRWAY_ASSERT(group <= kMostGroup, "more query heads of a kv head than there is room for");
  if (floats_.size() < static_cast<size_t>(heads)) floats_.resize(static_cast<size_t>(heads)), digits_.resize(floats_.size());
  const auto floats = static_cast<size_t>(group * (shape.room() + shape.padded())),
             digits = static_cast<size_t>(2 * group * shape.room());
  for (auto& own : floats_) own.resize(std::max(own.size(), floats));
  for (auto& own : digits_) own.resize(std::max(own.size(), digits));
}

void HeadScratch::place(int64_t head, AttendArgs& a) {
  a.scores = floats_[static_cast<size_t>(head)].data();
  a.sums = a.scores + a.group * a.room;
  a.digits = digits_[static_cast<size_t>(head)].data();
}

}  // namespace fairway::textcode
