#include "textcode/surprisal.h"

#include <algorithm>

#include "base/error.h"
#include "tokenizer/case_tokens.h"
#include "tokenizer/utf8.h"

namespace fairway::textcode {
namespace {

// Walks the text as written along the text as read: what lies before a place of the one lies before which place of the other.
// An edit belongs to the piece that begins where it does, or that it begins in.
class WrittenSide {
 public:
  WrittenSide(std::string_view written, std::span<const TextEdit> edits) : written_(written), edits_(edits) {}

  std::string_view until(uint64_t read) {  // called with growing places
    for (; next_ < edits_.size() && edits_[next_].at < read; ++next_)
      shift_ += static_cast<int64_t>(edits_[next_].inserted.size()) - static_cast<int64_t>(edits_[next_].removed);
    // Inside of what an edit removed, the place is behind what it put there.
    uint64_t at = read;
    if (next_ > 0) at = std::max(at, edits_[next_ - 1].at + edits_[next_ - 1].removed);
    return to(static_cast<uint64_t>(static_cast<int64_t>(at) + shift_));
  }
  std::string_view rest() { return to(written_.size()); }

 private:
  std::string_view to(uint64_t end) {
    end = std::clamp<uint64_t>(end, from_, written_.size());
    const std::string_view part = written_.substr(from_, end - from_);
    from_ = end;
    return part;
  }
  std::string_view written_;
  std::span<const TextEdit> edits_;
  size_t next_ = 0;
  int64_t shift_ = 0;
  uint64_t from_ = 0;
};

// The last character of the text lacks bytes.
bool ends_inside_character(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    const auto lead = static_cast<unsigned char>(text[text.size() - back]);
    if ((lead & 0xC0) == 0x80) continue;
    return lead >= 0xC2 && lead <= 0xF4 && back < (lead >= 0xF0 ? 4U : lead >= 0xE0 ? 3U : 2U);
  }
  return false;
}

}  // namespace

std::vector<TextPiece> pieces_of(const Vocabulary& tokenizer, const TextTokens& tokens, std::span<const double> bits) {
  FAIRWAY_ASSERT(bits.size() == tokens.ids.size(), "every token has its bits");
  const std::string written = with_edits(tokens.read, tokens.edits);
  const bool cased = declares_case_ops(tokenizer);
  WrittenSide side(written, tokens.edits);
  CaseDecoder letters;
  std::vector<TextPiece> pieces;
  TextPiece open;
  uint64_t read = 0;
  std::string raw;  // as written, its case transformed where the tokenizer wants that
  const auto add = [&](std::string_view part) {
    raw += part;
    open.text += cased ? letters.push(part) : std::string(part);
  };
  const auto close = [&] {
    open.changed = raw != open.read;
    pieces.push_back(std::exchange(open, {}));
    raw.clear();
  };
  for (size_t i = 0; i < tokens.ids.size(); ++i) {
    const std::string piece = piece_as_read(tokenizer.piece(tokens.ids[i]));
    open.read += piece;
    open.bits += bits[i];
    read += piece.size();
    add(side.until(read));
    if (!open.text.empty() && !ends_inside_character(open.text)) close();
  }
  add(side.rest());
  if (cased) open.text += letters.finish();
  const bool left = !open.text.empty() || !open.read.empty() || open.bits > 0;
  if (left && !pieces.empty()) {  // what follows the last piece belongs to it
    TextPiece& last = pieces.back();
    last.text += open.text, last.read += open.read, last.bits += open.bits;
    last.changed = true;
  } else if (left) {
    close();
  }
  return pieces;
}

std::string html_escaped(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t size = utf8_character(text.substr(at));
    if (size == 0) {
      out += "\xEF\xBF\xBD";
      ++at;
      continue;
    }
    switch (text[at]) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      case '\0': out += "\xEF\xBF\xBD"; break;
      default: out.append(text, at, size);
    }
    at += size;
  }
  return out;
}

}  // namespace fairway::textcode
