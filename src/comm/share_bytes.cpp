#include "comm/share_bytes.h"

#include <algorithm>

namespace fairway {

void share_bytes(Communicator& comm, std::string& bytes, int from) {
  constexpr int64_t kAtOnce = int64_t{1} << 30;
  auto size = static_cast<int64_t>(bytes.size());
  comm.broadcast(make_view(&size, {{sizeof(size)}, DType::u8}), from);
  bytes.resize(static_cast<size_t>(size));
  for (int64_t at = 0; at < size; at += kAtOnce)
    comm.broadcast(make_view(bytes.data() + at, {{std::min(kAtOnce, size - at)}, DType::u8}), from);
}

std::vector<std::string> gather_bytes(Communicator& comm, const std::string& mine) {
  std::vector<std::string> all(static_cast<size_t>(comm.size()));
  for (int rank = 0; rank < comm.size(); ++rank) {
    std::string& text = all[static_cast<size_t>(rank)];
    if (rank == comm.rank()) text = mine;
    share_bytes(comm, text, rank);
  }
  return all;
}

}  // namespace fairway
