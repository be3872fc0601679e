#include "analysis/receipt_identity.h"

#include "base/sha256.h"

namespace fairway {
namespace {

using nlohmann::ordered_json;

const ordered_json* found_at(const ordered_json& record, std::initializer_list<const char*> path) {
  const ordered_json* at = &record;
  for (const char* key : path) {
    if (!at->is_object() || !at->contains(key)) return nullptr;
    at = &(*at)[key];
  }
  return at;
}

std::string told(const ordered_json& record, std::initializer_list<const char*> path) {
  const ordered_json* at = found_at(record, path);
  return at == nullptr ? "" : at->is_string() ? at->get<std::string>() : at->dump();
}

std::string told_files(const ordered_json* list) {
  std::vector<std::string> hashes;
  if (list != nullptr && list->is_array())
    for (const ordered_json& file : *list) hashes.push_back(told(file, {"sha256"}));
  return files_identity(hashes);
}

}  // namespace

std::string files_identity(const std::vector<std::string>& hashes) {
  std::string all;
  for (const std::string& hash : hashes) all += hash + "\n";
  return hashes.empty() ? "none" : sha256_hex(all);
}

std::string form_identity(bool packed) { return packed ? "an artifact" : "weights as trained"; }

Identities receipt_identities(const ordered_json& receipt, std::string by) {
  const std::string packed = told(receipt, {"score", "packed"});
  Identities out{.by = std::move(by)};
  out.tell(IdentityKind::text, {told(receipt, {"data", "text"})})
      .tell(IdentityKind::tokenizer, {told(receipt, {"tokenizer", "identity"}), told(receipt, {"tokenizer", "sha256"})})
      .tell(IdentityKind::artifact, {told(receipt, {"artifact", "sha256"})})
      .tell(IdentityKind::recipe, {told(receipt, {"recipe"})})
      .tell(IdentityKind::shards, {told_files(found_at(receipt, {"data", "shards"}))})
      .tell(IdentityKind::byte_counts, {told_files(found_at(receipt, {"data", "byte_counts"}))})
      .tell(IdentityKind::form, {packed.empty() ? "" : form_identity(packed == "true")})
      .tell(IdentityKind::mode, {told(receipt, {"settings", "mode"})})
      .tell(IdentityKind::context, {told(receipt, {"settings", "context"})})
      .tell(IdentityKind::stride, {told(receipt, {"settings", "stride"})})
      .tell(IdentityKind::documents, {told(receipt, {"settings", "documents"})})
      .tell(IdentityKind::settings, {told(receipt, {"settings", "set"})})
      .tell(IdentityKind::legal, {told(receipt, {"legal"})});
  return out;
}

}  // namespace fairway
