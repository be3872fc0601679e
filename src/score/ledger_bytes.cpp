// A rank's share of a ledger as bytes, for processes that merge theirs. Read by the same program that wrote them.
#include <cstring>

#include "score/ledger.h"

namespace fairway {
namespace {

template <class T>
void put(std::string& bytes, const T* values, size_t count) {
  bytes.append(reinterpret_cast<const char*>(values), count * sizeof(T));
}

template <class T>
void take(std::string_view& bytes, T* values, size_t count) {
  FAIRWAY_ASSERT(bytes.size() >= count * sizeof(T), "a share from another rank is cut short");
  if (count > 0) std::memcpy(values, bytes.data(), count * sizeof(T));
  bytes.remove_prefix(count * sizeof(T));
}

struct Header {
  int64_t begin, end, scored, events;
  int32_t version;
  int64_t tilt;
};

}  // namespace

std::string ScoreLedger::share_bytes() const {
  FAIRWAY_ASSERT(strict_ && captures_.empty(), "shares are of legal modes");
  const Header header{share_begin_, share_end_, scored_count_, static_cast<int64_t>(events_.size()), state_version_, tilt_};
  std::string bytes;
  put(bytes, &header, 1);
  put(bytes, nll_.data(), nll_.size());
  put(bytes, digest_.data(), digest_.size());
  put(bytes, version_.data(), version_.size());
  put(bytes, times_.data(), times_.size());
  put(bytes, events_.data(), events_.size());
  return bytes;
}

void ScoreLedger::take_share_bytes(std::string_view bytes) {
  Header header{};
  take(bytes, &header, 1);
  take_share(header.begin, header.end, header.version);
  take(bytes, nll_.data(), nll_.size());
  take(bytes, digest_.data(), digest_.size());
  take(bytes, version_.data(), version_.size());
  take(bytes, times_.data(), times_.size());
  events_.resize(static_cast<size_t>(header.events));
  take(bytes, events_.data(), events_.size());
  scored_count_ = header.scored;
  tilt_ = header.tilt;
}

}  // namespace fairway
