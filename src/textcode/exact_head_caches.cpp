#include <algorithm>

#include "base/error.h"
#include "textcode/head_caches.h"

namespace fairway::textcode {

size_t HeadCaches::head_bytes(const Shape& shape) {
  return static_cast<size_t>(2 * shape.room()) * (static_cast<size_t>(shape.padded()) * sizeof(int16_t) + sizeof(float));
}

HeadCaches::HeadCaches(const Shape& shape)
    : shape_(shape),
      memory_("keys and values", static_cast<size_t>(shape.heads) * head_bytes(shape)),
      most_key_(most_factor(shape.padded())) {
  FAIRWAY_ASSERT(shape.padded() <= kMostHeadSize, "attention heads wider than there is room for");
}

void HeadCaches::place(int64_t head, AttendArgs& a) const {
  const int64_t room = shape_.room(), padded = shape_.padded();
  std::byte* at = memory_.data() + static_cast<size_t>(head) * head_bytes(shape_);
  a.size = shape_.size, a.padded = padded, a.room = room, a.most_key = most_key_;
  a.keys = reinterpret_cast<int16_t*>(at);
  a.values = a.keys + room * padded;
  a.key_units = reinterpret_cast<float*>(a.values + room * padded);
  a.value_units = a.key_units + room;
}

void HeadScratch::fit(int64_t heads, int64_t group, const HeadCaches::Shape& shape) {
  FAIRWAY_ASSERT(group <= kMostGroup, "more query heads of a kv head than there is room for");
  if (floats_.size() < static_cast<size_t>(heads)) floats_.resize(static_cast<size_t>(heads));
  const auto floats = static_cast<size_t>(group * (shape.room() + shape.padded()));
  for (auto& own : floats_) own.resize(std::max(own.size(), floats));
}

void HeadScratch::place(int64_t head, AttendArgs& a) {
  a.scores = floats_[static_cast<size_t>(head)].data();
  a.sums = a.scores + a.group * a.room;
}

}  // namespace fairway::textcode
