#include "data/documents.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "tokenizer/model_file.h"

namespace fairway::data {
namespace {

constexpr size_t kReadBytes = 1 << 18;
constexpr size_t kMaxJsonLine = size_t{64} << 20, kMaxTextDocument = size_t{1} << 20;
constexpr std::string_view kBlanks = " \t\r\v";

constexpr std::string_view kUtf8Mark = "\xEF\xBB\xBF";
constexpr size_t kLongestMark = 4;
struct ForeignText {
  std::string_view mark, name;
};
constexpr ForeignText kForeignTexts[] = {{{"\xFF\xFE\0\0", 4}, "UTF-32"},  // before UTF-16, whose mark begins it
                                         {{"\0\0\xFE\xFF", 4}, "UTF-32"},
                                         {"\xFF\xFE", "UTF-16"},
                                         {"\xFE\xFF", "UTF-16"}};

bool is_blank(std::string_view line) { return line.find_first_not_of(kBlanks) == std::string_view::npos; }
bool is_empty(std::string_view text) { return text.find_first_not_of(" \t\r\n\v") == std::string_view::npos; }

// Where a line may be cut: before its last space, or else before its last character, which may be incomplete.
size_t last_break(std::string_view line) {
  const size_t space = line.find_last_of(' ');
  if (space != std::string_view::npos && space > 0) return space;
  size_t at = line.size();
  while (at > 0 && (static_cast<unsigned char>(line[at - 1]) & 0xC0) == 0x80) --at;
  return at > 1 ? at - 1 : line.size();
}

}  // namespace

LineReader::LineReader(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}

std::string_view LineReader::peek(size_t least) {
  while (buffer_.size() - begin_ < least) {
    buffer_.erase(0, begin_);
    begin_ = 0;
    const size_t held = buffer_.size();
    buffer_.resize(kReadBytes);
    const size_t got = source_->read(buffer_.data() + held, kReadBytes - held);
    buffer_.resize(held + got);
    if (got == 0) break;
  }
  return std::string_view(buffer_).substr(begin_);
}

bool LineReader::next(std::string& line, bool& whole, size_t limit) {
  line.clear();
  whole = false;
  bool any = false;
  while (line.size() < limit) {
    const std::string_view ready = peek();
    if (ready.empty()) break;
    any = true;
    const std::string_view part = ready.substr(0, limit - line.size());
    const size_t end = part.find('\n');
    line.append(part.substr(0, end));
    begin_ += end == std::string_view::npos ? part.size() : end + 1;
    if (end == std::string_view::npos) continue;
    whole = true;
    return true;
  }
  whole = whole || line.size() < limit;  // the last line needs no end
  return any;
}

DocumentReader::DocumentReader(const std::filesystem::path& path) : path_(path), lines_(open_source(path)) {
  const std::string_view mark = lines_.peek(kLongestMark);
  for (const ForeignText& other : kForeignTexts) {
    if (mark.starts_with(other.mark))
      throw InputError(fmt::format("{}: begins with the byte-order mark of {}; expected UTF-8", path.string(), other.name));
  }
  if (mark.starts_with(kUtf8Mark)) lines_.skip(kUtf8Mark.size());
  const std::string_view start = lines_.peek();
  const size_t first = start.find_first_not_of(" \t\r\n");
  json_ = first != std::string_view::npos && start[first] == '{';
}

bool DocumentReader::next(Record& record) { return json_ ? next_json(record) : next_text(record); }

bool DocumentReader::next_json(Record& record) {
  bool whole = false;
  while (lines_.next(record.text, whole, kMaxJsonLine)) {
    record.line = ++line_;
    if (!whole) throw InputError(fmt::format("{}: line {} is longer than {} bytes", path_.string(), line_, kMaxJsonLine));
    if (!is_blank(record.text)) return true;
  }
  return false;
}

// The next line, or what a cut left of the last one joined with what follows it.
bool DocumentReader::fetch_line(std::string& line, bool& whole) {
  if (!has_rest_) {
    if (!lines_.next(line, whole, kMaxTextDocument)) return false;
    line_ += whole;
    return true;
  }
  has_rest_ = false;
  line.swap(rest_);
  whole = rest_whole_;
  if (whole) return true;
  std::string more;
  if (lines_.next(more, whole, kMaxTextDocument)) {
    line += more;
    line_ += whole;
  } else {
    whole = true;
  }
  return true;
}

void DocumentReader::keep_rest(std::string& line, size_t from, size_t skip, bool whole) {
  rest_ = line.substr(from + skip);
  rest_whole_ = whole;
  has_rest_ = true;
  line.resize(from);
}

bool DocumentReader::next_text(Record& record) {
  std::string line;
  bool whole = true;
  int blank_lines = 0;
  record.text.clear();
  while (fetch_line(line, whole)) {
    const size_t feed = line.find('\f');
    if (feed != std::string::npos) {
      keep_rest(line, feed, 1, whole);
    } else if (!whole) {
      keep_rest(line, last_break(line), 0, false);  // a line without end: its last word goes to the next document
    }
    const bool cut = feed != std::string::npos || !whole;
    blank_lines = !cut && is_blank(line) ? blank_lines + 1 : 0;
    const bool separator = blank_lines >= 2 || line == "%" || line == "%\r";
    if (!separator && !(record.text.empty() && blank_lines > 0)) {
      if (is_empty(record.text)) record.line = std::max<uint64_t>(line_, 1);
      record.text += line;
      if (!cut) record.text += '\n';
    }
    if (!separator && !cut && record.text.size() < kMaxTextDocument) continue;
    if (!is_empty(record.text)) return true;
    record.text.clear();
  }
  return !is_empty(record.text);
}

std::string DocumentReader::place(const Record& record) const {
  return fmt::format("{}: line {}", path_.string(), record.line);
}

void DocumentReader::decode(Record& record) const {
  if (!json_) {
    if (!is_valid_utf8(record.text))
      throw InputError(fmt::format("{}: the document at line {} is not valid UTF-8", path_.string(), record.line));
    return;
  }
  auto json = parse_json(record.text, place(record));
  const auto text = json.is_object() ? json.find("text") : json.end();
  if (!json.is_object() || text == json.end() || !text->is_string())
    throw InputError(place(record) + " is not a JSON object with a string under \"text\"");
  record.text = std::move(text->get_ref<std::string&>());
}

}  // namespace fairway::data
