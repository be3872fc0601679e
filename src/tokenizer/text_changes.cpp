#include "tokenizer/text_changes.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "tokenizer/case_tokens.h"
#include "tokenizer/utf8.h"

namespace fairway {
namespace {

constexpr size_t kReach = 64;  // bytes of both texts that a change may cover before it is cut into several

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Where the two texts stand, and whether they go on alike from some bytes further on.
struct Walk {
  std::string_view read, written;
  size_t i = 0, j = 0;

  bool ended() const { return i == read.size() && j == written.size(); }
  bool alike(size_t a, size_t b, size_t bytes) const {
    if (i + a > read.size() || j + b > written.size()) return false;
    const std::string_view x = read.substr(i + a, bytes), y = written.substr(j + b, bytes);
    if (x.size() < bytes || y.size() < bytes)
      return i + a + x.size() == read.size() && j + b + y.size() == written.size() && x == y;
    return x == y;
  }
};

struct Change {
  size_t removed, inserted;
};

// The smallest change after which the texts go on alike; blanks, which change most often, are tried first.
Change next_change(const Walk& w) {
  if (w.i == w.read.size() || w.j == w.written.size()) return {w.read.size() - w.i, w.written.size() - w.j};
  size_t blanks = 0;
  while (w.j + blanks < w.written.size() && is_blank(w.written[w.j + blanks])) ++blanks;
  const size_t space = w.read[w.i] == ' ' ? 1 : 0;
  if (blanks > 0 && w.alike(space, blanks, 1)) return {space, blanks};
  for (const size_t bytes : {6, 2})
    for (size_t sum = 1; sum <= kReach; ++sum)
      for (size_t removed = 0; removed <= sum; ++removed)
        if (w.alike(removed, sum - removed, bytes)) return {removed, sum - removed};
  return blanks > 0 ? Change{space, blanks} : Change{1, 1};
}

struct Dropped {
  size_t at;  // in what is kept
  std::string bytes;
};

// The characters of a text that a tokenizer is shown, and the bytes between them.
std::string text_alone(std::string_view text, std::vector<Dropped>& dropped) {
  std::string kept;
  for (size_t at = 0; at < text.size();) {
    const size_t size = utf8_character(text.substr(at));
    if (size > 0 && text[at] != '\0') {
      kept.append(text, at, size);
      at += size;
      continue;
    }
    if (dropped.empty() || dropped.back().at != kept.size()) dropped.push_back({kept.size(), {}});
    dropped.back().bytes += text[at++];
  }
  return kept;
}

// Edits that give the kept text become edits that give the whole.
std::vector<TextEdit> with_dropped(std::vector<TextEdit> edits, const std::vector<Dropped>& dropped) {
  if (dropped.empty()) return edits;
  std::vector<TextEdit> out;
  size_t next = 0;
  uint64_t read = 0, kept = 0;                 // behind the last edit
  const auto copy_until = [&](uint64_t end) {  // drops before this place of the text as read, none of them in an edit
    for (; next < dropped.size() && dropped[next].at - kept < end - read; ++next)
      out.push_back({read + (dropped[next].at - kept), 0, dropped[next].bytes});
  };
  for (TextEdit& edit : edits) {
    copy_until(edit.at);
    kept += edit.at - read;
    const uint64_t length = edit.inserted.size();
    for (uint64_t more = 0; next < dropped.size() && dropped[next].at <= kept + length; ++next) {
      edit.inserted.insert(dropped[next].at - kept + more, dropped[next].bytes);
      more += dropped[next].bytes.size();
    }
    read = edit.at + edit.removed;
    kept += length;
    out.push_back(std::move(edit));
  }
  copy_until(UINT64_MAX);
  return out;
}

}  // namespace

std::string piece_as_read(const Piece& piece) {
  if (piece.type == PieceType::byte) {
    unsigned value = 0;
    std::from_chars(piece.text.data() + 3, piece.text.data() + 5, value, 16);  // <0xNN>
    return std::string(1, static_cast<char>(value));
  }
  if (piece.type != PieceType::normal && piece.type != PieceType::user_defined) return {};
  std::string text;
  for (size_t at = 0; at < piece.text.size();) {
    const bool space = std::string_view(piece.text).substr(at).starts_with(kSpaceMark);
    text += space ? ' ' : piece.text[at];
    at += space ? kSpaceMark.size() : 1;
  }
  return text;
}

ReadPieces::ReadPieces(const Vocabulary& tokenizer) {
  for (int id = 0; id < tokenizer.vocab(); ++id) texts_.push_back(piece_as_read(tokenizer.piece(id)));
}

std::string ReadPieces::text(std::span<const int> ids) const {
  std::string text;
  for (const int id : ids) text += texts_.at(static_cast<size_t>(id));
  return text;
}

std::string text_as_read(const Vocabulary& tokenizer, std::span<const int> ids) {
  std::string text;
  for (const int id : ids) {
    if (id < 0 || id >= tokenizer.vocab())
      throw InputError(fmt::format("{}: token {} is outside its vocabulary of {}", tokenizer.name(), id, tokenizer.vocab()));
    text += piece_as_read(tokenizer.piece(id));
  }
  return text;
}

std::vector<TextEdit> edits_between(std::string_view read, std::string_view written) {
  std::vector<TextEdit> edits;
  for (Walk w{read, written};;) {
    while (w.i < read.size() && w.j < written.size() && read[w.i] == written[w.j]) ++w.i, ++w.j;
    if (w.ended()) return edits;
    const Change change = next_change(w);
    const std::string_view inserted = written.substr(w.j, change.inserted);
    if (!edits.empty() && edits.back().at + edits.back().removed == w.i) {
      edits.back().removed += change.removed;
      edits.back().inserted += inserted;
    } else {
      edits.push_back({w.i, change.removed, std::string(inserted)});
    }
    w.i += change.removed, w.j += change.inserted;
  }
}

std::string with_edits(std::string_view read, std::span<const TextEdit> edits) {
  std::string text;
  uint64_t from = 0;
  for (const TextEdit& edit : edits) {
    FAIRWAY_ASSERT(edit.at >= from && edit.at <= read.size() && edit.removed <= read.size() - edit.at, "an edit out of place");
    text.append(read, from, edit.at - from);
    text += edit.inserted;
    from = edit.at + edit.removed;
  }
  text.append(read, from);
  return text;
}

uint64_t changed_bytes(std::span<const TextEdit> edits) {
  uint64_t bytes = 0;
  for (const TextEdit& edit : edits) bytes += std::max<uint64_t>(edit.removed, edit.inserted.size());
  return bytes;
}

TextTokens tokenize_text(const Tokenizer& tokenizer, std::string_view text) {
  const std::string cased = declares_case_ops(tokenizer) ? encode_case(text) : std::string();
  const std::string_view written = declares_case_ops(tokenizer) ? std::string_view(cased) : text;
  std::vector<Dropped> dropped;
  const std::string kept = tokenizer.lossless() ? std::string(written) : text_alone(written, dropped);
  TextTokens out;
  tokenizer.encode(kept, out.ids);
  out.read = text_as_read(tokenizer, out.ids);
  out.edits = with_dropped(edits_between(out.read, kept), dropped);
  return out;
}

std::string text_of(const Vocabulary& tokenizer, std::span<const int> ids, std::span<const TextEdit> edits) {
  std::string written = with_edits(text_as_read(tokenizer, ids), edits);
  return declares_case_ops(tokenizer) ? decode_case(written) : written;
}

}  // namespace fairway
