#include "base/identity.h"

#include <gmock/gmock.h>

#include "base/error.h"

namespace fairway {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kOne(64, 'a'), kTwo(64, 'b'), kThree(64, 'c');

std::vector<IdentityKind> kinds(const Identities& have, const Identities& other) {
  std::vector<IdentityKind> out;
  for (const IdentityDifference& one : differences(have, other)) out.push_back(one.kind);
  return out;
}

TEST(IdentityGuard, ComparesWhatBothTell) {
  Identities have, other;
  have.tell(IdentityKind::context, {"2048"}).tell(IdentityKind::text, {kOne}).tell(IdentityKind::mode, {"plain"});
  other.tell(IdentityKind::text, {kOne}).tell(IdentityKind::context, {"2048"}).tell(IdentityKind::stride, {"64"});
  EXPECT_TRUE(differences(have, other).empty()) << "what one of them does not tell is not compared";
  other.tell(IdentityKind::mode, {""});
  EXPECT_FALSE(other.tells(IdentityKind::mode)) << "an empty name tells nothing";
  Identities changed;
  changed.tell(IdentityKind::mode, {"sliding"}).tell(IdentityKind::text, {kTwo}).tell(IdentityKind::context, {"1024"});
  EXPECT_EQ(kinds(have, changed), (std::vector{IdentityKind::text, IdentityKind::mode, IdentityKind::context}));
  EXPECT_EQ(differences(have, changed)[0].text(), "text SHA-256 aaaaaaaaaaaa… and SHA-256 bbbbbbbbbbbb…");
  EXPECT_EQ(differences(have, changed)[2].text(), "context 2048 and 1024");
}

TEST(IdentityGuard, OneNameInCommonIsEnough) {
  const Identities both = tokenizer_identity({kOne, kTwo}, "x.model");
  EXPECT_TRUE(differences(both, tokenizer_identity({kTwo}, "old.fwy")).empty());
  EXPECT_TRUE(differences(tokenizer_identity({kOne}, "new.fwy"), both).empty());
  EXPECT_FALSE(differences(both, tokenizer_identity({kThree}, "other.fwy")).empty());
}

TEST(IdentityGuard, NamesBothFilesBothHashesAndTheRemedy) {
  const Identities have = tokenizer_identity({kOne}, "x.model"), made = tokenizer_identity({kTwo}, "m.fwy");
  EXPECT_NO_THROW(require_same(have, tokenizer_identity({}, "m.fwy"), "swap it"));
  try {
    require_same(have, made, "swap it");
    FAIL() << "accepted another tokenizer";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("x.model: this tokenizer (SHA-256 aaaaaaaaaaaa…) is not the one that m.fwy"),
                                    HasSubstr("(SHA-256 bbbbbbbbbbbb…); swap it")));
  }
}

}  // namespace
}  // namespace fairway
