// Range coding with 64 bits (Martin, 1979; carries are added to what is written already). A symbol has the share
// [start, start + freq) of a total below 2^48; what division leaves over belongs to the last. The stream ends with as few bytes
// as tell it apart, and reading past its end gives zeros.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace fairway::textcode {

struct Share {
  uint64_t start = 0, freq = 0;
};
inline constexpr uint64_t kRangeFloor = uint64_t{1} << 56, kMostTotal = uint64_t{1} << 48;

class RangeEncoder {
 public:
  void put(Share share, uint64_t total) {
    const uint64_t unit = range_ / total, below = unit * share.start;
    low_ += below;
    if (low_ < below) carry();
    range_ = share.start + share.freq == total ? range_ - below : unit * share.freq;
    while (range_ < kRangeFloor) {
      out_ += static_cast<char>(low_ >> 56);
      low_ <<= 8, range_ <<= 8;
    }
  }
  std::string finish() {
    const uint64_t top = (low_ + (kRangeFloor - 1)) & ~(kRangeFloor - 1);  // the range holds a multiple of its floor
    if (top < low_) carry();
    out_ += static_cast<char>(top >> 56);
    while (!out_.empty() && out_.back() == '\0') out_.pop_back();
    return std::move(out_);
  }

 private:
  void carry() {
    for (size_t at = out_.size(); at-- > 0 && ++out_[at] == '\0';) {}
  }
  uint64_t low_ = 0, range_ = ~uint64_t{0};
  std::string out_;
};

class RangeDecoder {
 public:
  explicit RangeDecoder(std::string_view bytes) : bytes_(bytes) {
    for (int i = 0; i < 8; ++i) code_ = code_ << 8 | next();
  }
  // A number below `total`, inside the share of the symbol that comes; then take() of that share.
  uint64_t slot(uint64_t total) const {
    const uint64_t at = code_ / (range_ / total);
    return at < total ? at : total - 1;
  }
  void take(Share share, uint64_t total) {
    const uint64_t unit = range_ / total, below = unit * share.start;
    code_ -= below;
    range_ = share.start + share.freq == total ? range_ - below : unit * share.freq;
    while (range_ < kRangeFloor) {
      code_ = code_ << 8 | next();
      range_ <<= 8;
    }
  }

 private:
  uint64_t next() { return at_ < bytes_.size() ? static_cast<unsigned char>(bytes_[at_++]) : 0; }
  std::string_view bytes_;
  size_t at_ = 0;
  uint64_t code_ = 0, range_ = ~uint64_t{0};
};

}  // namespace fairway::textcode
