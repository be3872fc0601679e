// Who proposes a token from repeated text, target by target (scoring spec §2.7). The token expert is the definition of
// tilt_hints.h, in tables of fixed size. The word experts of PR #1105 decide by the class of the target itself which of them
// may speak: they are here to be caught by the audit.
#pragma once

#include <deque>
#include <vector>

#include "score/distribution.h"
#include "score/ngram_rules.h"
#include "score/ngram_table.h"
#include "tokenizer/byte_tables.h"

namespace fairway {

class TokenExpert {
 public:
  TokenExpert(const NgramRules& rules, int64_t table_bits, NgramTable::Probing probing);
  void clear();
  Hint hint() const;  // for the token after those absorbed
  void absorb(const ScoredTokens& tokens);

 private:
  void push(uint16_t token);
  void remember(uint16_t token);

  NgramRules rules_;
  std::vector<NgramTable> tables_;  // of the rules' orders
  std::vector<uint16_t> recent_;    // newest first, as many as the longest order looks at
  bool begun_ = false;
};

// Within-word and word-start experts with the agreement bonus.
class PublishedExperts {
 public:
  PublishedExperts(const NgramRecipe& recipe, const ByteTables& classes);
  void clear();
  Hint hint_seeing_target(uint16_t target) const;
  void absorb(const ScoredTokens& tokens);

 private:
  bool starts_word(uint16_t token, uint16_t previous) const;
  uint64_t within_key() const;
  uint64_t start_key() const;
  void absorb_word(uint16_t token);

  const ByteTables* classes_;
  TokenExpert tokens_;
  std::vector<NgramTable> within_;  // by the length so far: 1, 2, 3 or more
  NgramTable start_;
  std::deque<uint64_t> words_;  // hashes of the last four words
  uint64_t word_ = 0;
  int64_t word_tokens_ = 0;
  uint16_t previous_ = 0;
};

}  // namespace fairway
