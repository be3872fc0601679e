#include "base/identity.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/error.h"

namespace fairway {
namespace {

struct KindRow {
  const char* name;
  bool hash;  // else the value is shown as it is
};
constexpr std::array<KindRow, 16> kKinds{{{"text", true},
                                          {"tokenizer", true},
                                          {"artifact", true},
                                          {"recipe", true},
                                          {"validation shards", true},
                                          {"byte counts (fineweb_val_bytes_*.bin)", true},
                                          {"form of the weights", false},
                                          {"number of targets", false},
                                          {"number of bytes", false},
                                          {"whole text", false},
                                          {"mode", false},
                                          {"context", false},
                                          {"stride", false},
                                          {"documents", false},
                                          {"changed keys (--set)", false},
                                          {"legal", false}}};
static_assert(kKinds.size() == static_cast<size_t>(IdentityKind::legal) + 1);

const KindRow& row_of(IdentityKind kind) { return kKinds[static_cast<size_t>(kind)]; }

std::string shown(IdentityKind kind, const std::string& name) {
  constexpr size_t kShown = 12;
  return row_of(kind).hash && name.size() > kShown ? fmt::format("SHA-256 {}…", name.substr(0, kShown)) : name;
}

bool one_in_common(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return std::any_of(a.begin(), a.end(),
                     [&](const std::string& name) { return std::find(b.begin(), b.end(), name) != b.end(); });
}

}  // namespace

Identities& Identities::tell(IdentityKind kind, std::vector<std::string> names) {
  std::erase(names, "");
  if (!names.empty()) traits.push_back({kind, std::move(names)});
  return *this;
}

bool Identities::tells(IdentityKind kind) const {
  return std::any_of(traits.begin(), traits.end(), [&](const Trait& trait) { return trait.kind == kind; });
}

Identities tokenizer_identity(std::vector<std::string> names, std::string by) {
  return Identities{.by = std::move(by)}.tell(IdentityKind::tokenizer, std::move(names));
}

const char* name_of(IdentityKind kind) { return row_of(kind).name; }

std::string IdentityDifference::text() const { return fmt::format("{} {} and {}", name_of(kind), have, other); }

std::vector<IdentityDifference> differences(const Identities& have, const Identities& other) {
  std::vector<IdentityDifference> out;
  for (const Identities::Trait& mine : have.traits)
    for (const Identities::Trait& theirs : other.traits)
      if (mine.kind == theirs.kind && !one_in_common(mine.names, theirs.names))
        out.push_back({mine.kind, shown(mine.kind, mine.names.front()), shown(mine.kind, theirs.names.front())});
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.kind < b.kind; });
  return out;
}

void require_same(const Identities& have, const Identities& made_with, std::string_view remedy) {
  const std::vector<IdentityDifference> found = differences(have, made_with);
  if (found.empty()) return;
  const IdentityDifference& first = found.front();
  throw InputError(fmt::format("{}: this {} ({}) is not the one that {} was made with ({}); {}", have.by, name_of(first.kind),
                               first.have, made_with.by, first.other, remedy));
}

}  // namespace fairway
