// Training text and validation text are kept apart: documents that both have are counted before training begins, refused, and
// told in the run's folder, where audit, receipt and report find the count.
#pragma once

#include "data/document_hashes.h"
#include "stages/held_out.h"
#include "stages/requests.h"

namespace fairway {

// InputError where training and validation text share documents and the request does not allow it.
data::SharedDocuments require_apart(const TrainRequest& request, const std::optional<HeldOut>& held_out);
// shared_documents.json in the run's folder; says of which validation text it is.
void write_shared(const TrainRequest& request, const data::SharedDocuments& shared, const std::optional<HeldOut>& held_out);

}  // namespace fairway
