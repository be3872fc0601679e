#include "stages/tokenizer_check.h"

#include "base/output.h"

namespace fairway {
namespace {

constexpr const char* kRemedy = "expected the tokenizer of the shards it was trained on";

}  // namespace

Identities tokenizer_claim(const WeightSource& source) {
  return tokenizer_identity({source.weights.tokenizer}, source.file.path.string());
}

void require_tokenizer(const Identities& claim, const Vocabulary& tokenizer, const std::filesystem::path& file) {
  require_same(tokenizer_identity(tokenizer.names(), file.string()), claim, kRemedy);
}

void require_tokenizer(const Identities& claim, data::FolderTokenizer& folder) {
  if (!claim.tells(IdentityKind::tokenizer)) {
    folder.notes.push_back(claim.by + ": does not name its tokenizer, so it could not be checked against the data's");
  } else if (folder.tokenizer) {
    require_tokenizer(claim, *folder.tokenizer, folder.file);
  } else {
    require_same(tokenizer_identity({folder.identity}, folder.file.string()), claim, kRemedy);
  }
}

void tell_notes(const std::vector<std::string>& notes, bool quiet) {
  if (quiet) return;
  for (const std::string& note : notes) print_err("note: " + note + "\n");
}

}  // namespace fairway
