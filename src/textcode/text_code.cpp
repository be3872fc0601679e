#include "textcode/text_code.h"

#include <fmt/core.h>

#include <algorithm>

#include "artifact/artifact.h"
#include "artifact/byte_reader.h"
#include "base/error.h"
#include "base/identity.h"
#include "textcode/edit_code.h"

namespace fairway::textcode {
namespace {

constexpr std::string_view kMark = "FWTX";
constexpr char kVersion = 3;
constexpr size_t kHashBytes = 8;
constexpr uint64_t kMostTokensAByte = 64;  // one character may become many under a tokenizer's rules
constexpr uint64_t kMostTokenCount = uint64_t{1} << 27;
enum Method : char { kBytes = 0, kTokens = 1, kAsItIs = 2 };

std::string hash_bytes(const std::string& hex) {
  std::string out;
  for (size_t i = 0; i < kHashBytes; ++i) out += static_cast<char>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  return out;
}

std::string number_bytes(uint32_t value) {
  std::string out(4, '\0');
  for (char& byte : out) byte = static_cast<char>(value), value >>= 8;
  return out;
}
uint32_t number_of(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

std::string code_of_bytes(std::string_view text) {
  RangeEncoder out;
  ByteModel model;
  uint8_t before = 0;
  for (const char c : text) model.put(out, before, static_cast<uint8_t>(c)), before = static_cast<uint8_t>(c);
  return out.finish();
}
std::string bytes_of_code(std::string_view code, uint64_t length) {
  RangeDecoder in(code);
  ByteModel model;
  std::string text;
  uint8_t before = 0;
  while (text.size() < length) text += static_cast<char>(before = model.get(in, before));
  return text;
}

// Empty when the text does not come back: its bytes are coded then.
std::string code_of_tokens(std::string_view text, const TextCodec& codec) {
  const TextTokens tokens = tokenize_text(*codec.tokenizer, text);
  constexpr double kMostOutside = 0.5;  // of text of which more lies outside of its tokens, tokens tell little
  if (tokens.ids.size() > std::min(kMostTokensAByte * text.size(), kMostTokenCount) ||
      static_cast<double>(changed_bytes(tokens.edits)) > kMostOutside * static_cast<double>(text.size()) ||
      text_of(*codec.tokenizer, tokens.ids, tokens.edits) != text)
    return {};
  RangeEncoder out;
  if (!tokens.ids.empty()) {
    const auto predictor = codec.open(static_cast<int64_t>(tokens.ids.size()));
    put_tokens(out, tokens.ids, *predictor, codec.progress);
  }
  put_edits(out, tokens.edits, tokens.read);
  std::string code;
  put_varint(code, tokens.ids.size());
  return code + out.finish();
}

std::string text_of_tokens(const TextCodeFile& file, const std::string& name, const TextCodec& codec) {
  ByteReader reader(file.code, name + ": ");
  const uint64_t count = reader.varint("the number of tokens");
  if (count > std::min(kMostTokensAByte * file.length, kMostTokenCount))
    throw InputError(fmt::format("{}: {} tokens for a text of {} bytes; the data is damaged", name, count, file.length));
  RangeDecoder in(reader.take(reader.left(), "the code"));
  std::vector<int> ids;
  if (count > 0) {
    const auto predictor = codec.open(static_cast<int64_t>(count));
    ids = get_tokens(in, static_cast<int64_t>(count), *predictor, codec.progress);
  }
  const std::string read = text_as_read(*codec.tokenizer, ids);
  return text_of(*codec.tokenizer, ids, get_edits(in, read, file.length + read.size()));
}

// What the file keeps of the hashes, against what is here.
void require_codec(const TextCodeFile& file, const std::string& name, const TextCodec& codec) {
  const auto hex_of = [](std::string_view bytes) {
    std::string out;
    for (const char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
    return out;
  };
  Identities made{.by = name}, here{.by = codec.name};
  made.tell(IdentityKind::artifact, {hex_of(file.artifact)}).tell(IdentityKind::tokenizer, {hex_of(file.tokenizer)});
  here.tell(IdentityKind::artifact, {codec.artifact.substr(0, 2 * kHashBytes)})
      .tell(IdentityKind::tokenizer, {codec.tokenizer->identity().substr(0, 2 * kHashBytes)});
  require_same(here, made, "expected the artifact and the tokenizer that compressed it");
}

}  // namespace

TextCodeFile parse_text_code(std::string_view bytes, const std::string& name) {
  ByteReader reader(bytes, name + ": ");
  if (!bytes.starts_with(kMark))
    throw InputError(name + ": not a text compressed by fairway (it begins with other bytes than FWTX)");
  reader.take(kMark.size(), "the mark");
  if (const uint8_t version = reader.byte("the version"); version != kVersion)
    throw InputError(
        fmt::format("{}: version {} of compressed texts; this program reads version {}", name, version, int{kVersion}));
  constexpr size_t kSum = 4;
  if (bytes.size() < kMark.size() + 1 + kSum ||
      artifact_checksum(bytes.substr(0, bytes.size() - kSum)) != number_of(bytes.substr(bytes.size() - kSum)))
    throw InputError(name + ": its checksum does not hold; the data is damaged");
  TextCodeFile file;
  file.method = reader.byte("the method");
  file.artifact = reader.take(kHashBytes, "the artifact's hash");
  file.tokenizer = reader.take(kHashBytes, "the tokenizer's hash");
  file.length = reader.varint("the length");
  file.checksum = number_of(reader.take(4, "the text's checksum"));
  if (reader.left() < kSum) throw InputError(name + ": ends inside its header");
  file.code = reader.take(reader.left() - kSum, "the code");
  if (file.method > kAsItIs) throw InputError(fmt::format("{}: method {}; expected 0, 1 or 2", name, file.method));
  if (file.length > kMostTextBytes)
    throw InputError(fmt::format("{}: a text of {} bytes; at most {} are read", name, file.length, kMostTextBytes));
  return file;
}

std::string compress_text(std::string_view text, const TextCodec& codec) {
  if (text.size() > kMostTextBytes)
    throw InputError(fmt::format("a text of {} bytes; at most {} are compressed at once", text.size(), kMostTextBytes));
  const std::string plain = code_of_bytes(text), tokens = text.empty() ? std::string() : code_of_tokens(text, codec);
  const bool by_tokens = !tokens.empty() && tokens.size() < std::min(plain.size(), text.size());
  const bool by_bytes = !by_tokens && plain.size() < text.size();
  std::string out(kMark);
  out += kVersion;
  out += by_tokens ? kTokens : by_bytes ? kBytes : kAsItIs;
  out += hash_bytes(codec.artifact) + hash_bytes(codec.tokenizer->identity());
  put_varint(out, text.size());
  out += number_bytes(artifact_checksum(text));
  out += by_tokens ? tokens : by_bytes ? plain : text;
  return out + number_bytes(artifact_checksum(out));
}

std::string decompress_text(std::string_view bytes, const std::string& name, const TextCodec& codec) {
  const TextCodeFile file = parse_text_code(bytes, name);
  require_codec(file, name, codec);
  std::string text(file.method == kAsItIs ? file.code : std::string_view());
  if (file.method == kBytes) text = bytes_of_code(file.code, file.length);
  if (file.method == kTokens) text = text_of_tokens(file, name, codec);
  if (text.size() != file.length || artifact_checksum(text) != file.checksum)
    throw InputError(fmt::format("{}: the text does not have the checksum that the file tells; the data is damaged", name));
  return text;
}

}  // namespace fairway::textcode
