#include "tokenizer/model_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_set>

#include "base/error.h"
#include "base/sha256.h"
#include "tokenizer/wire_reader.h"

namespace fairway {
namespace {

constexpr size_t kMaxPieces = 1 << 20;

[[noreturn]] void fail(const std::string& name, const std::string& what) {
  throw InputError(fmt::format("{}: not a usable SentencePiece model: {}", name, what));
}

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

// Changes what the message mentions: protobuf merges a message that is there twice.
void parse_normalizer(const WireReader::Field& message, const std::string& name, NormalizerRules& rules) {
  WireReader reader(message.bytes, message.place, name);
  for (WireReader::Field field; reader.next(field);) {
    if (field.number == 2 && field.wire == 2 && !field.bytes.empty()) rules.map = CharsMap::parse(field.bytes, name);
    if (field.number == 3 && field.wire == 0) rules.dummy_prefix = field.value != 0;
    if (field.number == 4 && field.wire == 0) rules.collapse_spaces = field.value != 0;
    if (field.number == 5 && field.wire == 0) rules.escape_spaces = field.value != 0;
  }
}

void parse_trainer(const WireReader::Field& message, const std::string& name, ModelFile& model) {
  WireReader reader(message.bytes, message.place, name);
  for (WireReader::Field field; reader.next(field);) {
    if (field.number == 3 && field.wire == 0) model.model_type = static_cast<int>(std::min<uint64_t>(field.value, 99));
    if (field.number == 24 && field.wire == 0) model.space_as_suffix = field.value != 0;
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
  NormalizerRules denormalizer;  // checked, not used
  WireReader reader(bytes, 0, name);
  for (WireReader::Field field; reader.next(field);) {
    if (field.number > 5 || field.number == 4) continue;
    if (field.wire != 2) reader.fail("a message");
    if (field.number == 1) model.pieces.push_back(parse_piece(field, name));
    if (field.number == 2) parse_trainer(field, name, model);
    if (field.number == 3) parse_normalizer(field, name, model.normalizer);
    if (field.number == 5) parse_normalizer(field, name, denormalizer);
    if (model.pieces.size() > kMaxPieces) reader.fail("fewer pieces");
  }
  if (model.pieces.empty()) fail(name, "it holds no pieces");
  std::unordered_set<std::string_view> texts;
  int unknown = 0;
  for (const Piece& piece : model.pieces) {
    if (!texts.insert(piece.text).second) fail(name, fmt::format("the piece \"{}\" appears twice", piece.text));
    unknown += piece.type == PieceType::unknown;
  }
  if (unknown != 1) fail(name, fmt::format("exactly one piece must be the unknown piece, but {} are", unknown));
  if (model.model_type != 2) fail(name, "it is not a BPE model; every tokenizer of the challenge is one");
  check_byte_pieces(model, name);
  return model;
}

std::string model_identity(const ModelFile& model) {
  std::string bytes;
  const auto add = [&](uint64_t number) { bytes.append(reinterpret_cast<const char*>(&number), sizeof number); };
  add(model.pieces.size());
  for (const Piece& piece : model.pieces) {
    add(static_cast<uint64_t>(piece.type));
    add(std::bit_cast<uint32_t>(piece.score));
    add(piece.text.size());
    bytes += piece.text;
  }
  const NormalizerRules& rules = model.normalizer;
  for (const bool rule :
       {model.byte_fallback, model.space_as_suffix, rules.dummy_prefix, rules.collapse_spaces, rules.escape_spaces})
    add(rule ? 1 : 0);
  add(static_cast<uint64_t>(model.model_type));
  rules.map.append_to(bytes);
  return sha256_hex(bytes);
}

}  // namespace fairway
