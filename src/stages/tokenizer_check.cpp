#include "stages/tokenizer_check.h"

#include <fmt/core.h>

#include "base/error.h"
#include "base/output.h"

namespace fairway {
namespace {

[[noreturn]] void refuse_tokenizer(const TokenizerClaim& claim, const std::string& hash, const std::filesystem::path& file) {
  throw InputError(
      fmt::format("{}: this tokenizer (SHA-256 {}…) is not the one that {} was made with ({}…); expected the tokenizer of the "
                  "shards it was trained on",
                  file.string(), hash.substr(0, 12), claim.by, claim.hash.substr(0, 12)));
}

}  // namespace

TokenizerClaim tokenizer_claim(const WeightSource& source) { return {source.weights.tokenizer, source.file.path.string()}; }

void require_tokenizer(const TokenizerClaim& claim, const Vocabulary& tokenizer, const std::filesystem::path& file) {
  if (!claim.hash.empty() && !tokenizer.answers_to(claim.hash)) refuse_tokenizer(claim, tokenizer.identity(), file);
}

void require_tokenizer(const TokenizerClaim& claim, data::FolderTokenizer& folder) {
  if (claim.hash.empty()) {
    folder.notes.push_back(claim.by + ": does not name its tokenizer, so it could not be checked against the data's");
  } else if (folder.tokenizer) {
    require_tokenizer(claim, *folder.tokenizer, folder.file);
  } else if (!folder.identity.empty() && folder.identity != claim.hash) {
    refuse_tokenizer(claim, folder.identity, folder.file);
  }
}

void tell_notes(const std::vector<std::string>& notes, bool quiet) {
  if (quiet) return;
  for (const std::string& note : notes) print_err("note: " + note + "\n");
}

}  // namespace fairway
