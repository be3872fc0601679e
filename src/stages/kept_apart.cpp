#include "stages/kept_apart.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "tokenizer/text_identity.h"

namespace fairway {

data::SharedDocuments require_apart(const TrainRequest& request, const std::optional<HeldOut>& held_out) {
  const std::string folder = request.data.string();
  if (!held_out) return {.unknown = folder + " has no validation shards"};
  const data::SharedDocuments shared = data::find_shared(request.data, held_out->tokens);
  if (shared.shared > 0 && !request.allow_shared)
    throw InputError(folder + ": " + sentence_of(shared) +
                     "; take them out of the training text (data tokenize --apart), or train on them with "
                     "--allow-shared-documents, which no audit "
                     "calls legal");
  return shared;
}

void write_shared(const TrainRequest& request, const data::SharedDocuments& shared, const std::optional<HeldOut>& held_out) {
  nlohmann::ordered_json told{{"sentence", sentence_of(shared)}};
  if (shared.unknown.empty()) {
    told["shared"] = shared.shared;
    told["training"] = shared.training;
    told["validation"] = shared.validation;
    told["text"] = text_identity(held_out->tokens, held_out->tokenizer);
  }
  write_file_atomic(request.out / "shared_documents.json", told.dump(2) + "\n");
}

}  // namespace fairway
