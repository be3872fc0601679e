#include "bundle/strip_source.h"

#include <cctype>

namespace fairway::bundle {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word_or_quote(char c) { return is_word(c) || c == '"' || c == '\''; }
bool is_one_of(std::string_view set, char c) { return set.find(c) != std::string_view::npos; }
bool is_bracket(char c) { return is_one_of("{}();,]", c); }  // is a token by itself beside any other
bool is_operator(char c) { return is_bracket(c) || is_one_of("[<>=+-*/%&|^?:!~", c); }

// Whether two tokens stay two without the space between them. A word and an operator do, except for what a number takes as its
// exponent (0xE + 1).
bool joins_safely(char before, char after) {
  if (is_one_of("eEpP", before) && is_one_of("+-", after)) return false;
  if (is_word_or_quote(before)) return is_operator(after);
  if (is_word_or_quote(after)) return is_operator(before);
  return is_operator(before) && is_operator(after) && (is_bracket(before) || is_bracket(after));
}

// Reads one token after the other; what matters of each is only where it ends.
class Stripper {
 public:
  explicit Stripper(std::string_view text) : text_(text) {}

  std::string run() {
    while (at_ < text_.size()) step();
    flush();
    return std::move(out_);
  }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void step() {
    const char c = peek();
    if (c == '\n') {
      ++at_;
      end_line();
    } else if (c == '\\' && peek(1) == '\n') {
      at_ += 2;
      put_space();
      line_ += "\\\n";
      begins_ = true;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
      space_ = true;
    } else if (c == '/' && peek(1) == '/') {
      line_comment();
    } else if (c == '/' && peek(1) == '*') {
      const size_t end = text_.find("*/", at_ + 2);
      at_ = end == std::string_view::npos ? text_.size() : end + 2;
      space_ = true;
    } else if (c == '"' || c == '\'') {
      quoted(c);
    } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
      number();
    } else if (is_word(c)) {
      word();
    } else {
      follow_assertion(c);
      put(1);
    }
  }

  void line_comment() {  // a backslash at its end takes in the next line
    while (at_ < text_.size() && peek() != '\n') at_ += peek() == '\\' && peek(1) == '\n' ? 2 : 1;
  }

  // Characters of the literal that begins at `from`.
  size_t quoted_length(size_t from) const {
    const char quote = text_[from];
    size_t end = from + 1;
    while (end < text_.size() && text_[end] != quote && text_[end] != '\n') end += text_[end] == '\\' ? 2 : 1;
    return std::min(end + (end < text_.size() && text_[end] == quote ? 1 : 0), text_.size()) - from;
  }

  void quoted(char quote) {
    if (const size_t end = quote == '"' ? help_end() : at_; end > at_) return put_instead("\"\"_help", end);
    const size_t length = quoted_length(at_);
    says_why_&& quote == '"' ? put_instead("\"\"", at_ + length) : put(length);
  }

  void put_instead(std::string_view text, size_t end) {
    fresh_ = false;
    put_space();
    line_ += text;
    at_ = end;
    begins_ = false;
  }

  // Follows the brackets of an assertion, an op's rule or a launch to where it says what was wrong.
  void follow_assertion(char c) {
    if (depth_ < 0) return;
    depth_ += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == '(' && depth_ == 1) says_why_ = arguments_ == 0;
    if (c == ',' && depth_ == 1) says_why_ = --arguments_ <= 0;
    if (c == ')' && depth_ == 0) depth_ = -1, says_why_ = false;
  }

  // Where the literals end that begin here and are one text with the suffix _help; here, if they are not.
  size_t help_end() const {
    size_t end = at_;
    while (end < text_.size() && text_[end] == '"') {
      end += quoted_length(end);
      if (text_.substr(end, 5) == "_help" && !(end + 5 < text_.size() && is_word(text_[end + 5]))) return end + 5;
      end = std::min(text_.find_first_not_of(" \t\n", end), text_.size());
    }
    return at_;
  }

  void number() {  // a quote between digits separates them
    size_t length = 1;
    for (;; ++length) {
      const char c = peek(length), before = peek(length - 1);
      const bool sign = (c == '+' || c == '-') && (before == 'e' || before == 'E' || before == 'p' || before == 'P');
      if (!is_word(c) && c != '.' && !sign && !(c == '\'' && is_word(peek(length + 1)))) break;
    }
    put(length);
  }

  void word() {
    size_t length = 1;
    while (is_word(peek(length))) ++length;
    const std::string_view name = text_.substr(at_, length);
    if (depth_ < 0 && !begins_with_directive()) {
      if (name == "FAIRWAY_ASSERT") depth_ = 0, arguments_ = 1;
      if (name == "require") depth_ = 0, arguments_ = 2;  // the condition, the op's name, then the sentence
      if (name == "check_launch") depth_ = arguments_ = 0;
    }
    const bool raw = name == "R" || name == "LR" || name == "uR" || name == "UR" || name == "u8R";
    if (!raw || peek(length) != '"') return put(length);
    const size_t open = text_.find('(', at_ + length);
    if (open == std::string_view::npos) return put(length);
    const std::string close = ")" + std::string(text_.substr(at_ + length + 1, open - at_ - length - 1)) + "\"";
    const size_t end = text_.find(close, open);
    put(end == std::string_view::npos ? text_.size() - at_ : end + close.size() - at_);
  }

  bool begins_with_directive() const { return !line_.empty() && line_.front() == '#'; }
  void put_space() {
    if (space_ && !begins_ && (begins_with_directive() || !joins_safely(line_.back(), peek()))) line_ += ' ';
    space_ = false;
  }
  void put(size_t length) {
    if (fresh_ && peek() == '#') flush();
    fresh_ = false;
    put_space();
    line_ += text_.substr(at_, length);
    at_ += std::min(length, text_.size() - at_);
    begins_ = false;
  }
  // Only directives have lines of their own; an empty one still ends one that was continued.
  void end_line() {
    if (begins_with_directive())
      flush();
    else
      space_ = !line_.empty();
    fresh_ = true;
  }
  void flush() {
    if (!line_.empty()) out_ += line_ + '\n';
    line_.clear();
    space_ = false;
    begins_ = true;
  }

  std::string_view text_;
  size_t at_ = 0;
  std::string out_, line_;
  bool space_ = false;  // since the last token
  bool begins_ = true;  // no token yet on this line
  bool fresh_ = true;   // nor on this line of the source
  int depth_ = -1;      // of brackets in one of these; -1: there is none
  int arguments_ = 0;   // before it says why
  bool says_why_ = false;
};

}  // namespace

std::string strip_source(std::string_view text) { return Stripper(text).run(); }

std::string strip_cmake(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (!line.empty() && line.front() != '#') out.append(line) += '\n';
  }
  return out;
}

}  // namespace fairway::bundle
