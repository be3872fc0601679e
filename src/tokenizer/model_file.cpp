#include "tokenizer/model_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <unordered_set>

#include "base/error.h"
#include "tokenizer/wire_reader.h"

namespace fairway {
namespace {

constexpr size_t kMaxPieces = 1 << 20;

[[noreturn]] void fail(const std::string& name, const std::string& what) {
  throw InputError(fmt::format("{}: not a usable SentencePiece model: {}", name, what));
}

// The normaliser's map: uint32 size of a double array (darts-clone units), the array, then NUL-ended replacement strings.
// Walks every reachable node and requires each step any byte can take from it, and each replacement, to lie inside.
class CharsMapCheck {
 public:
  CharsMapCheck(std::string_view blob, const std::string& name) : name_(name) {
    uint32_t trie_bytes = 0;
    if (blob.size() < 4) fail(name, "its character map is shorter than its header");
    std::memcpy(&trie_bytes, blob.data(), 4);
    if (trie_bytes > blob.size() - 4 || trie_bytes % 4 != 0 || trie_bytes < 4) fail(name, "its character map has a wrong size");
    units_.resize(trie_bytes / 4);
    std::memcpy(units_.data(), blob.data() + 4, trie_bytes);
    strings_ = blob.substr(4 + trie_bytes);
    if (!strings_.empty() && strings_.back() != '\0') fail(name, "the last string of its character map has no end");
  }

  void run() {
    std::vector<bool> seen(units_.size());
    push(offset(units_[0]), seen);
    while (!open_.empty()) {
      const uint32_t node = open_.back();
      open_.pop_back();
      for (uint32_t byte = 0; byte < 256; ++byte) {
        const uint32_t at = node ^ byte;
        if ((units_[at] & 0x800000FFU) != byte) continue;
        const uint32_t next = at ^ offset(units_[at]);
        push(next, seen);
        if ((units_[at] >> 8 & 1) != 0 && (units_[next] & 0x7FFFFFFFU) >= strings_.size())
          fail(name_, "its character map points past its strings");
      }
    }
  }

 private:
  static uint32_t offset(uint32_t unit) { return (unit >> 10) << ((unit & 0x200U) >> 6); }
  void push(uint32_t node, std::vector<bool>& seen) {
    if ((node | 255U) >= units_.size()) fail(name_, "its character map points outside itself");
    if (seen[node]) return;
    seen[node] = true;
    open_.push_back(node);
  }

  const std::string& name_;
  std::vector<uint32_t> units_, open_;
  std::string_view strings_;
};

Piece parse_piece(const WireReader::Field& message, const std::string& name) {
  WireReader reader(message.bytes, message.place, name);
  Piece piece;
  for (WireReader::Field field; reader.next(field);) {
    if (field.number == 1 && field.wire == 2) piece.text = std::string(field.bytes);
    if (field.number == 2 && field.wire == 5) piece.score = std::bit_cast<float>(static_cast<uint32_t>(field.value));
    if (field.number == 3 && field.wire == 0) {
      if (field.value < 1 || field.value > 6) reader.fail("a piece type from 1 to 6");
      piece.type = static_cast<PieceType>(field.value);
    }
  }
  if (piece.text.empty() || piece.text.find('\0') != std::string::npos || !is_valid_utf8(piece.text))
    reader.fail("a piece of valid, non-empty UTF-8");
  if (!std::isfinite(piece.score)) reader.fail("a finite piece score");
  return piece;
}

void parse_normalizer(const WireReader::Field& message, const std::string& name) {
  WireReader reader(message.bytes, message.place, name);
  for (WireReader::Field field; reader.next(field);)
    if (field.number == 2 && field.wire == 2 && !field.bytes.empty()) CharsMapCheck(field.bytes, name).run();
}

void parse_trainer(const WireReader::Field& message, const std::string& name, ModelFile& model) {
  WireReader reader(message.bytes, message.place, name);
  for (WireReader::Field field; reader.next(field);) {
    if (field.number == 3 && field.wire == 0) model.model_type = static_cast<int>(std::min<uint64_t>(field.value, 99));
    if (field.number == 35 && field.wire == 0) model.byte_fallback = field.value != 0;
  }
}

void check_byte_pieces(const ModelFile& model, const std::string& name) {
  if (!model.byte_fallback) return;
  const auto bytes =
      std::count_if(model.pieces.begin(), model.pieces.end(), [](const Piece& p) { return p.type == PieceType::byte; });
  if (bytes != 256) fail(name, fmt::format("byte fallback needs 256 byte pieces, it has {}", bytes));
}

}  // namespace

ModelFile parse_model_file(std::string_view bytes, const std::string& name) {
  ModelFile model;
  WireReader reader(bytes, 0, name);
  for (WireReader::Field field; reader.next(field);) {
    if (field.number > 5 || field.number == 4) continue;
    if (field.wire != 2) reader.fail("a message");
    if (field.number == 1) model.pieces.push_back(parse_piece(field, name));
    if (field.number == 2) parse_trainer(field, name, model);
    if (field.number == 3 || field.number == 5) parse_normalizer(field, name);
    if (model.pieces.size() > kMaxPieces) reader.fail("fewer pieces");
  }
  if (model.pieces.empty()) fail(name, "it holds no pieces");
  std::unordered_set<std::string_view> texts;
  int unknown = 0;
  for (const Piece& piece : model.pieces) {
    if (!texts.insert(piece.text).second) fail(name, fmt::format("the piece \"{}\" is there twice", piece.text));
    unknown += piece.type == PieceType::unknown;
  }
  if (unknown != 1) fail(name, fmt::format("one piece must be the unknown one, {} are", unknown));
  if (model.model_type != 2) fail(name, "it is no BPE model, and every tokenizer of the challenge is one");
  check_byte_pieces(model, name);
  return model;
}

bool is_valid_utf8(std::string_view text) {
  const auto* at = reinterpret_cast<const unsigned char*>(text.data());
  const auto* const end = at + text.size();
  while (at < end) {
    const unsigned char lead = *at++;
    if (lead < 0x80) continue;
    const int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
    if (lead < 0xC2 || lead > 0xF4 || end - at < more) return false;
    // The second byte alone decides over-long forms, surrogates and values past U+10FFFF.
    const unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    const unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (*at < low || *at > high) return false;
    for (int i = 1; i < more; ++i)
      if ((at[i] & 0xC0) != 0x80) return false;
    at += more;
  }
  return true;
}

}  // namespace fairway
