// Which documents of a validation text a run's training text has too, as training told it in shared_documents.json.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace fairway {

struct SharedTexts {
  std::optional<uint64_t> shared;  // nothing: not known, and `detail` says why
  std::string detail;
};
// Beside a run's artifact. `text`: identity of the validation text that is asked about; empty: whichever training compared.
SharedTexts shared_texts(const std::filesystem::path& folder, const std::string& text);

}  // namespace fairway
