#include "tokenizer/bpe_encoder.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/error.h"
#include "tokenizer/utf8.h"

namespace fairway {
namespace {

constexpr size_t kRememberedWords = 1 << 15;  // 64 bytes each

uint32_t step(uint32_t hash, char c) { return (hash ^ static_cast<unsigned char>(c)) * 0x01000193U; }
uint32_t finish(uint32_t hash) { return (hash ^ (hash >> 15)) * 0x2C1B3C6DU >> 12 ^ hash; }
constexpr uint32_t kHashStart = 0x811C9DC5U;

uint32_t hash_of(std::string_view text) {
  uint32_t hash = kHashStart;
  for (const char c : text) hash = step(hash, c);
  return finish(hash);
}

bool is_one_character(std::string_view text) { return !text.empty() && utf8_character(text) == text.size(); }

// A word and its ids in one cache line.
struct alignas(64) Remembered {
  uint8_t bytes = 0, ids = 0;
  char word[30];
  uint16_t id[16];
};

struct Symbol {
  size_t begin = 0, size = 0;  // in the word; size 0: merged into the one before it
  int previous = -1, next = -1;
  bool frozen = false;
};

struct Merge {
  float score = 0;
  int left = 0, right = 0;
  size_t size = 0;
  bool operator<(const Merge& other) const { return score < other.score || (score == other.score && left > other.left); }
};

// Characters up to the next word, and the hash of them.
size_t word_size(std::string_view text, uint32_t& hash) {
  hash = kHashStart;
  size_t at = 0;
  do hash = step(hash, text[at++]);
  while (at < text.size() && !(text[at] == kSpaceMark[0] && text.substr(at).starts_with(kSpaceMark)));
  hash = finish(hash);
  return at;
}

std::vector<std::string> frozen_pieces(const ModelFile& model) {
  std::vector<std::string> frozen;
  for (const Piece& piece : model.pieces)
    if (piece.type == PieceType::user_defined) frozen.push_back(piece.text);
  return frozen;
}

bool is_supported(const ModelFile& model) {
  if (!model.byte_fallback || model.space_as_suffix || !model.normalizer.escape_spaces || model.pieces.size() > 65536)
    return false;
  std::set<float> scores;
  for (const Piece& piece : model.pieces) {
    const bool single = is_one_character(piece.text);
    switch (piece.type) {
      case PieceType::normal:
        if (piece.text.find(kSpaceMark, 1) != std::string::npos) return false;
        if (!single && !scores.insert(piece.score).second) return false;
        break;
      case PieceType::user_defined:
        if (!single || piece.text == kSpaceMark) return false;
        break;
      case PieceType::unused: return false;
      default:
        if (single) return false;  // the library would take such a character for this piece
    }
  }
  return true;
}

}  // namespace

struct BpeEncoder::Scratch {
  std::string normal;
  std::vector<Symbol> symbols;
  std::vector<Merge> agenda;
  std::vector<Remembered> words = std::vector<Remembered>(kRememberedWords);
};

std::unique_ptr<BpeEncoder> BpeEncoder::make(const ModelFile& model) {
  return is_supported(model) ? std::unique_ptr<BpeEncoder>(new BpeEncoder(model)) : nullptr;
}

BpeEncoder::~BpeEncoder() = default;

BpeEncoder::BpeEncoder(const ModelFile& model)
    : normalizer_(model.normalizer, frozen_pieces(model)), pieces_(model.pieces), table_(4096, -1) {
  while (table_.size() < 4 * pieces_.size()) table_.resize(2 * table_.size(), -1);
  const int count = static_cast<int>(pieces_.size());
  for (int id = 0; id < count; ++id) {
    const Piece& piece = pieces_[static_cast<size_t>(id)];
    if (piece.type != PieceType::normal && piece.type != PieceType::user_defined) continue;
    any_frozen_ = any_frozen_ || piece.type == PieceType::user_defined;
    longest_ = std::max(longest_, piece.text.size());
    size_t at = hash_of(piece.text) % table_.size();
    while (table_[at] >= 0) at = (at + 1) % table_.size();
    table_[at] = id;
  }
  for (int byte = 0; byte < 256; ++byte) {
    const std::string name = fmt::format("<0x{:02X}>", byte);
    const auto found = std::find_if(pieces_.begin(), pieces_.end(), [&](const Piece& piece) { return piece.text == name; });
    FAIRWAY_ASSERT(found != pieces_.end(), "a model with byte fallback has a piece for each byte");
    byte_ids_[byte] = static_cast<int>(found - pieces_.begin());
  }
}

int BpeEncoder::find(std::string_view piece) const {
  if (piece.size() > longest_) return -1;
  const size_t mask = table_.size() - 1;  // a power of two
  for (size_t at = hash_of(piece) & mask; table_[at] >= 0; at = (at + 1) & mask)
    if (pieces_[static_cast<size_t>(table_[at])].text == piece) return table_[at];
  return -1;
}

void BpeEncoder::encode(std::string_view text, std::vector<int>& ids) const {
  std::unique_ptr<Scratch> scratch;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      scratch = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (!scratch) scratch = std::make_unique<Scratch>();
  ids.clear();
  normalizer_.run(text, scratch->normal);
  uint32_t hash = 0;
  for (std::string_view rest = scratch->normal; !rest.empty();) {
    const std::string_view word = rest.substr(0, word_size(rest, hash));
    rest.remove_prefix(word.size());
    Remembered& entry = scratch->words[hash % kRememberedWords];
    if (entry.bytes == word.size() && std::memcmp(entry.word, word.data(), word.size()) == 0) {
      ids.insert(ids.end(), entry.id, entry.id + entry.ids);
      continue;
    }
    const size_t first = ids.size();
    encode_word(word, *scratch, ids);
    const size_t count = ids.size() - first;
    if (word.size() > sizeof entry.word || count > std::size(entry.id)) continue;
    entry.bytes = static_cast<uint8_t>(word.size());
    entry.ids = static_cast<uint8_t>(count);
    std::memcpy(entry.word, word.data(), word.size());
    for (size_t i = 0; i < count; ++i) entry.id[i] = static_cast<uint16_t>(ids[first + i]);
  }
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(scratch));
}

void BpeEncoder::split(std::string_view word, Scratch& scratch) const {
  scratch.symbols.clear();
  for (size_t at = 0; at < word.size();) {
    const size_t size = std::max<size_t>(utf8_character(word.substr(at)), 1);
    const int index = static_cast<int>(scratch.symbols.size());
    const int id = any_frozen_ ? find(word.substr(at, size)) : -1;
    const bool frozen = id >= 0 && pieces_[static_cast<size_t>(id)].type == PieceType::user_defined;
    scratch.symbols.push_back({at, size, index - 1, index + 1, frozen});
    at += size;
  }
  scratch.symbols.back().next = -1;
}

// Puts the merge of two neighbours on the agenda when they make a piece.
void BpeEncoder::offer(std::string_view word, int left, int right, Scratch& scratch) const {
  if (left < 0 || right < 0) return;
  const Symbol &a = scratch.symbols[static_cast<size_t>(left)], &b = scratch.symbols[static_cast<size_t>(right)];
  if (a.frozen || b.frozen) return;
  const int id = find(word.substr(a.begin, a.size + b.size));
  if (id < 0) return;
  scratch.agenda.push_back({pieces_[static_cast<size_t>(id)].score, left, right, a.size + b.size});
  std::push_heap(scratch.agenda.begin(), scratch.agenda.end());
}

// The best-scored merge first, of equal ones the leftmost, until none is left.
void BpeEncoder::encode_word(std::string_view word, Scratch& scratch, std::vector<int>& ids) const {
  split(word, scratch);
  auto& symbols = scratch.symbols;
  auto& agenda = scratch.agenda;
  agenda.clear();
  for (int i = 1; i < static_cast<int>(symbols.size()); ++i) offer(word, i - 1, i, scratch);
  while (!agenda.empty()) {
    std::pop_heap(agenda.begin(), agenda.end());
    const Merge merge = agenda.back();
    agenda.pop_back();
    Symbol &left = symbols[static_cast<size_t>(merge.left)], &right = symbols[static_cast<size_t>(merge.right)];
    if (left.size == 0 || right.size == 0 || left.size + right.size != merge.size) continue;  // one of them was merged since
    left.size = merge.size;
    left.next = right.next;
    if (right.next >= 0) symbols[static_cast<size_t>(right.next)].previous = merge.left;
    right.size = 0;
    offer(word, left.previous, merge.left, scratch);
    offer(word, merge.left, left.next, scratch);
  }
  for (int i = 0; i >= 0; i = symbols[static_cast<size_t>(i)].next) {
    const std::string_view piece = word.substr(symbols[static_cast<size_t>(i)].begin, symbols[static_cast<size_t>(i)].size);
    if (const int id = find(piece); id >= 0) {
      ids.push_back(id);
    } else {
      for (const char c : piece) ids.push_back(byte_ids_[static_cast<unsigned char>(c)]);
    }
  }
}

}  // namespace fairway
