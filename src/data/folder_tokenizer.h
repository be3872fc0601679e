// The tokenizer of a data folder. Shards are numbers; which text they stand for, and how many bytes, is the tokenizer's to say,
// so whoever opens shards asks here whether the tokenizer beside them is the one they were made with.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tokenizer/vocabulary.h"

namespace fairway::data {

struct FolderTokenizer {
  std::filesystem::path file;           // tokenizer.model or the one named, or the manifest where the folder has no such file
  std::optional<Vocabulary> tokenizer;  // none without the file
  std::string identity;                 // of the tokenizer, or as the manifest tells it; empty when neither does
  std::vector<std::string> notes;       // what could not be checked
};

// `elsewhere` takes the place of the folder's tokenizer.model, where it is named. InputError when the folder's manifest names
// another tokenizer.
FolderTokenizer open_tokenizer(const std::filesystem::path& folder, const std::filesystem::path& elsewhere = {});

}  // namespace fairway::data
