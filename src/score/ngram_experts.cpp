#include "score/ngram_experts.h"

#include <algorithm>

namespace fairway {
namespace {

constexpr uint64_t kWordPair = 1000003, kPrefixMultiplier = 1099511628211U, kLengthMixer = 0x9E3779B185EBCA87U;
constexpr int64_t kWordTableBits = 20;
constexpr size_t kWordsBack = 4;

}  // namespace

TokenExpert::TokenExpert(const NgramRules& rules, int64_t table_bits, NgramTable::Probing probing) : rules_(rules) {
  for (size_t i = 0; i < rules.orders.size(); ++i) tables_.emplace_back(table_bits, probing);
}

void TokenExpert::clear() {
  for (NgramTable& table : tables_) table.clear();
  recent_.clear();
  begun_ = false;
}

Hint TokenExpert::hint() const {
  for (size_t i = 0; i < tables_.size(); ++i) {
    const NgramOrder& order = rules_.orders[i];
    if (static_cast<int64_t>(recent_.size()) < order.length) continue;
    const NgramGuess guess = tables_[i].find(context_hash(rules_.hash, recent_, order.length));
    if (guess.count > 0 && order.believes(guess.best, guess.count))
      return {guess.token, rules_.strength(guess.best, guess.count)};
  }
  return {};
}

void TokenExpert::remember(uint16_t token) {
  for (size_t i = 0; i < tables_.size(); ++i) {
    const NgramOrder& order = rules_.orders[i];
    if (static_cast<int64_t>(recent_.size()) < order.length) continue;
    const uint64_t context = context_hash(rules_.hash, recent_, order.length);
    tables_[i].add(context, pair_hash(rules_.hash, context, token, order.length), token);
  }
}

void TokenExpert::push(uint16_t token) {
  recent_.insert(recent_.begin(), token);
  if (static_cast<int64_t>(recent_.size()) > rules_.orders.front().length) recent_.pop_back();
}

void TokenExpert::absorb(const ScoredTokens& tokens) {
  if (!begun_) push(tokens.inputs().front());
  begun_ = true;
  for (const uint16_t token : tokens.targets()) {
    remember(token);
    push(token);
  }
}

PublishedExperts::PublishedExperts(const NgramRecipe& recipe, const ByteTables& classes)
    : classes_(&classes),
      tokens_(five_orders(recipe, NgramHash::published), recipe.table_bits, NgramTable::Probing::sixteen),
      start_(kWordTableBits) {
  for (int i = 0; i < 3; ++i) within_.emplace_back(kWordTableBits);
}

void PublishedExperts::clear() {
  tokens_.clear();
  for (NgramTable& table : within_) table.clear();
  start_.clear();
  words_.clear();
  word_ = 0;
  word_tokens_ = 0;
  previous_ = 0;
}

bool PublishedExperts::starts_word(uint16_t token, uint16_t previous) const {
  return classes_->lead[token] != 0 || classes_->bound[token] != 0 || classes_->bound[previous] != 0;
}

uint64_t PublishedExperts::within_key() const { return word_ ^ static_cast<uint64_t>(word_tokens_) * kLengthMixer; }

uint64_t PublishedExperts::start_key() const {
  uint64_t key = 0;
  for (const uint64_t word : words_) key = key * kPrefixMultiplier ^ word;
  return key;
}

Hint PublishedExperts::hint_seeing_target(uint16_t target) const {
  const Hint token = tokens_.hint();
  Hint word;
  if (starts_word(target, previous_)) {  // the leak: which expert speaks is told by the target's own class
    const NgramGuess guess = words_.size() == kWordsBack ? start_.find(start_key()) : NgramGuess{};
    if (guess.count >= 3 && guess.confidence() >= 0.80) word = {guess.token, 0.50f};
  } else if (word_tokens_ > 0) {
    const NgramGuess guess = within_[static_cast<size_t>(std::min<int64_t>(word_tokens_, 3) - 1)].find(within_key());
    if (guess.count >= 1 && guess.confidence() >= 0.25) word = {guess.token, 0.55f};
  }
  constexpr float kAgreement = 0.5f;
  if (token.token >= 0 && token.token == word.token) return {token.token, std::max(token.beta, word.beta) + kAgreement};
  if (token.token < 0) return word;
  return word.token >= 0 && word.beta > token.beta ? word : token;
}

void PublishedExperts::absorb_word(uint16_t token) {
  if (starts_word(token, previous_)) {
    if (words_.size() == kWordsBack) start_.add(start_key(), start_key() * kWordPair ^ token, token);
    if (word_tokens_ > 0) words_.push_back(word_);
    if (words_.size() > kWordsBack) words_.pop_front();
    word_ = 0;
    word_tokens_ = 0;
  } else if (word_tokens_ > 0) {
    within_[static_cast<size_t>(std::min<int64_t>(word_tokens_, 3) - 1)].add(within_key(), within_key() * kWordPair ^ token,
                                                                             token);
  }
  word_ = (word_ ^ token) * kPrefixMultiplier;
  ++word_tokens_;
  previous_ = token;
}

void PublishedExperts::absorb(const ScoredTokens& tokens) {
  for (const uint16_t token : tokens.targets()) absorb_word(token);
  tokens_.absorb(tokens);
}

}  // namespace fairway
