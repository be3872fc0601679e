#include "score/ngram_experts.h"

#include <algorithm>
#include <array>
#include <bit>

namespace fairway {
namespace {

constexpr std::array<uint64_t, 32> kMultipliers{36313,   27191,   51647,   81929,   131071,  196613,  262147,  393241,
                                                524309,  655373,  786433,  917521,  1048583, 1179653, 1310729, 1441801,
                                                1572869, 1703941, 1835017, 1966087, 2097169, 2228243, 2359319, 2490389,
                                                2621471, 2752549, 2883617, 3014687, 3145757, 3276833, 3407903, 3538973};
constexpr uint64_t kPairMultiplier = 1000003, kPrefixMultiplier = 1099511628211U, kLengthMixer = 0x9E3779B185EBCA87U;
constexpr int64_t kWordTableBits = 20;
constexpr size_t kWordsBack = 4;

uint64_t mix(uint64_t state, uint64_t word) {
  state = (state ^ (word + 0x9E3779B97F4A7C15U)) * 0xD6E8FEB86659FD93U;
  return std::rotl(state, 29) ^ (state >> 32);
}

}  // namespace

uint64_t context_hash(NgramHash hash, std::span<const uint16_t> newest_first, int64_t order) {
  uint64_t state = hash == NgramHash::mixed ? static_cast<uint64_t>(order) : 0;
  for (int64_t k = 0; k < order; ++k) {
    const uint64_t token = newest_first[static_cast<size_t>(k)];
    const int64_t place = hash == NgramHash::oldest_first ? order - 1 - k : k;
    state = hash == NgramHash::mixed ? mix(state, token) : state ^ token * kMultipliers[static_cast<size_t>(place)];
  }
  return state;
}

uint64_t pair_hash(NgramHash hash, uint64_t context, uint16_t token, int64_t order) {
  if (hash == NgramHash::mixed) return mix(context, uint64_t{token} | uint64_t{1} << 32);
  return context * kPairMultiplier ^ token * kMultipliers[static_cast<size_t>(order)];
}

TokenExpert::TokenExpert(const NgramRecipe& recipe, Orders orders, NgramHash hash)
    : recipe_(recipe), one_(orders == Orders::one), hash_(hash) {
  if (one_) {
    orders_.push_back({recipe.order, recipe.threshold, 1, NgramTable(recipe.table_bits, NgramTable::Probing::whole_table)});
    return;
  }
  const auto add = [&](int64_t length, double confidence, uint32_t sightings) {
    orders_.push_back({length, confidence * recipe.threshold_scale, sightings, NgramTable(recipe.table_bits)});
  };
  add(8, 0.70, 3);
  add(10, 0.70, 3);
  add(12, 0.60, 2);
  add(14, 0.50, 2);
  add(16, 0.50, 2);
}

void TokenExpert::clear() {
  for (Order& order : orders_) order.table.clear();
  recent_.clear();
  begun_ = false;
}

Tilt TokenExpert::hint() const {
  for (auto order = orders_.rbegin(); order != orders_.rend(); ++order) {
    if (static_cast<int64_t>(recent_.size()) < order->length) continue;
    const NgramGuess guess = order->table.find(context_hash(hash_, recent_, order->length));
    if (guess.count >= order->sightings && guess.confidence() >= order->confidence)
      return {guess.token, one_ ? recipe_.beta : recipe_.beta * guess.confidence()};
  }
  return {};
}

void TokenExpert::remember(uint16_t token) {
  for (Order& order : orders_) {
    if (static_cast<int64_t>(recent_.size()) < order.length) break;
    const uint64_t context = context_hash(hash_, recent_, order.length);
    order.table.add(context, pair_hash(hash_, context, token, order.length), token);
  }
}

void TokenExpert::push(uint16_t token) {
  recent_.insert(recent_.begin(), token);
  if (static_cast<int64_t>(recent_.size()) > orders_.back().length) recent_.pop_back();
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
    : classes_(&classes), tokens_(recipe, TokenExpert::Orders::five, NgramHash::published), start_(kWordTableBits) {
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

Tilt PublishedExperts::hint_seeing_target(uint16_t target) const {
  const Tilt token = tokens_.hint();
  Tilt word;
  if (starts_word(target, previous_)) {  // the leak: which expert speaks is told by the target's own class
    const NgramGuess guess = words_.size() == kWordsBack ? start_.find(start_key()) : NgramGuess{};
    if (guess.count >= 3 && guess.confidence() >= 0.80) word = {guess.token, 0.50};
  } else if (word_tokens_ > 0) {
    const NgramGuess guess = within_[static_cast<size_t>(std::min<int64_t>(word_tokens_, 3) - 1)].find(within_key());
    if (guess.count >= 1 && guess.confidence() >= 0.25) word = {guess.token, 0.55};
  }
  constexpr double kAgreement = 0.5;
  if (token.token >= 0 && token.token == word.token) return {token.token, std::max(token.beta, word.beta) + kAgreement};
  if (token.token < 0) return word;
  return word.token >= 0 && word.beta > token.beta ? word : token;
}

void PublishedExperts::absorb_word(uint16_t token) {
  if (starts_word(token, previous_)) {
    if (words_.size() == kWordsBack) start_.add(start_key(), start_key() * kPairMultiplier ^ token, token);
    if (word_tokens_ > 0) words_.push_back(word_);
    if (words_.size() > kWordsBack) words_.pop_front();
    word_ = 0;
    word_tokens_ = 0;
  } else if (word_tokens_ > 0) {
    within_[static_cast<size_t>(std::min<int64_t>(word_tokens_, 3) - 1)].add(within_key(),
                                                                             within_key() * kPairMultiplier ^ token, token);
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
