// Documents of a text file, one at a time. JSON lines hold one each, under "text". Plain text is cut where a form feed stands,
// where two or more blank lines follow one another, and at lines that are a single '%' (the fortune format); a document over
// 1 MiB is cut at a line or a space, so that memory stays bounded. A UTF-8 byte-order mark at the front is no text; UTF-16 and
// UTF-32, told by theirs, are refused. The text itself is not changed otherwise.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "data/byte_source.h"

namespace fairway::data {

// Lines out of a source, at most `limit` bytes at a time.
class LineReader {
 public:
  explicit LineReader(std::unique_ptr<ByteSource> source);
  // False at the end. `whole` tells whether the line's end was reached within the limit; the line comes without "\n".
  bool next(std::string& line, bool& whole, size_t limit);
  std::string_view peek(size_t least = 1);      // the bytes at hand, no fewer than `least` unless at the end
  void skip(size_t bytes) { begin_ += bytes; }  // of those at hand

 private:
  std::unique_ptr<ByteSource> source_;
  std::string buffer_;
  size_t begin_ = 0;
};

struct Record {
  std::string text;   // a document, or a line of JSON that holds one
  uint64_t line = 0;  // where it begins, from 1
};

class DocumentReader {
 public:
  explicit DocumentReader(const std::filesystem::path& path);  // JSON lines when its first byte but white space is '{'

  bool next(Record& record);
  bool is_json() const { return json_; }
  // The document in a record: decodes JSON lines, checks UTF-8. InputError naming file and line. Safe from many threads.
  void decode(Record& record) const;
  std::string place(const Record& record) const;  // "FILE: line N"

 private:
  bool next_json(Record& record);
  bool next_text(Record& record);
  bool fetch_line(std::string& line, bool& whole);
  void keep_rest(std::string& line, size_t from, size_t skip, bool whole);

  std::filesystem::path path_;
  LineReader lines_;
  bool json_ = false;
  uint64_t line_ = 0;
  std::string rest_;  // of a line that was cut
  bool has_rest_ = false, rest_whole_ = true;
};

}  // namespace fairway::data
