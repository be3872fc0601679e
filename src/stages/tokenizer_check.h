// Weights, artifacts and shards remember the tokenizer they were made with; a command that brings them together asks here.
#pragma once

#include "base/identity.h"
#include "data/folder_tokenizer.h"
#include "stages/weights.h"

namespace fairway {

Identities tokenizer_claim(const WeightSource& source);

// InputError, naming both files and both hashes, unless the tokenizer is the one claimed.
void require_tokenizer(const Identities& claim, const Vocabulary& tokenizer, const std::filesystem::path& file);
// The same for a data folder; where the claim or the folder is silent, a note joins the folder's.
void require_tokenizer(const Identities& claim, data::FolderTokenizer& folder);

void tell_notes(const std::vector<std::string>& notes, bool quiet);  // to standard error

}  // namespace fairway
