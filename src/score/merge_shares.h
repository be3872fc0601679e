// Records of ranks that scored neighbouring parts of a stream.
#pragma once

#include "comm/share_bytes.h"
#include "score/ledger.h"

namespace fairway {

// Every rank's share goes into the ledger, in the order of the ranks. Collective.
inline void merge_shares(ScoreLedger& ledger, const ScoreLedger& own, Communicator& comm) {
  for (const std::string& bytes : gather_bytes(comm, own.share_bytes())) {
    ScoreLedger share = ledger.share(1, 1, 0);
    share.take_share_bytes(bytes);
    ledger.merge(share);
  }
}

}  // namespace fairway
