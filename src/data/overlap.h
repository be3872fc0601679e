// Documents that the training shards of one folder and the validation shards of another have in common.
#pragma once

#include "data/document_hashes.h"

namespace fairway::data {

struct Overlap {
  SharedDocuments shared;
  std::vector<std::string> notes;  // what could not be checked
};
// Documents are compared by their tokens: InputError when the folders name different tokenizers.
Overlap find_overlap(const std::filesystem::path& train, const std::filesystem::path& validation);

}  // namespace fairway::data
