#include "data/folder_tokenizer.h"

#include <fmt/core.h>

#include "base/identity.h"
#include "data/manifest.h"

namespace fairway::data {

FolderTokenizer open_tokenizer(const std::filesystem::path& folder, const std::filesystem::path& elsewhere) {
  FolderTokenizer out{.file = elsewhere.empty() ? folder / "tokenizer.model" : elsewhere};
  const std::optional<Manifest> manifest = read_manifest(folder);
  const std::filesystem::path listing = folder / "manifest.json";
  if (!elsewhere.empty() || std::filesystem::exists(out.file)) {
    out.tokenizer = Vocabulary::load(out.file);
    out.identity = out.tokenizer->identity();
    if (!manifest) {
      out.notes.push_back(fmt::format("{}: no manifest.json, so whether {} made these shards could not be checked",
                                      folder.string(), elsewhere.empty() ? "tokenizer.model" : elsewhere.string()));
    } else {
      require_same(tokenizer_identity(out.tokenizer->names(), out.file.string()),
                   tokenizer_identity(manifest->tokenizer_names(), listing.string()), "put that one back, or tokenize again");
    }
    return out;
  }
  if (manifest) out.file = listing, out.identity = manifest->tokenizer_identity;
  if (out.identity.empty())
    out.notes.push_back(
        fmt::format("{}: no tokenizer.model, so which tokenizer made these shards could not be checked", folder.string()));
  return out;
}

}  // namespace fairway::data
