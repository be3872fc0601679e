// TOML to recipe structs. The only file that sees toml++; its exceptions become InputError with file, line and key.
#define TOML_HEADER_ONLY 1
// Nesting is bounded because toml++ parses and destroys values recursively.
#define TOML_MAX_NESTED_VALUES 16
// toml++ asserts on some malformed keys that it goes on to report as errors; the report is what is wanted.
#define TOML_ASSERT(expr) static_cast<void>(0)
#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <concepts>

#include "base/error.h"
#include "base/nearest_word.h"
#include "recipe/recipe.h"

namespace fairway {
namespace {

constexpr size_t kMaxLine = 1000;
constexpr int64_t kMaxDotsPerLine = 48;  // dotted keys nest too, one table per dot
constexpr size_t kMaxListEntries = 256;
constexpr size_t kMostSuggested = 8;
constexpr std::string_view kExtends = "extends";  // at the head of a file: the recipe whose keys it takes over

std::string clipped(std::string_view text) {
  constexpr size_t kShown = 60;
  std::string out;
  for (const char c : text.substr(0, kShown)) out += (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) ? '?' : c;
  return text.size() > kShown ? out + "…" : out;
}

std::string shown(const toml::node& node) {
  if (node.is_table()) return "a table";
  if (node.is_array()) return "a list";
  if (const auto* text = node.as_string()) return fmt::format("\"{}\"", clipped(text->get()));
  if (const auto* number = node.as_integer()) return fmt::format("{}", number->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  return "a date or time";
}

std::string range_text(Between range) { return fmt::format("from {} to {}", range.least, range.most); }

struct Source {
  std::string_view name;
  bool has_lines;  // false for a command-line override
};

// Fills one struct from one TOML table: known keys through visit(), then a look for keys that visit() never asked for.
class Reader {
 public:
  Reader(const toml::table& table, std::string prefix, Source source)
      : table_(table), prefix_(std::move(prefix)), source_(source) {}

  template <class T>
  static void read(T& into, const toml::table& table, const std::string& prefix, Source source) {
    Reader reader(table, prefix, source);
    T::visit(into, reader);
    reader.refuse_unknown();
  }

  template <class T>
  void table(std::string_view name, T& value, Help) {
    const toml::node* node = find(name);
    if (node == nullptr) return;
    if (!node->is_table()) refuse(name, *node, "a table");
    read(value, *node->as_table(), prefix_ + std::string(name) + ".", source_);
  }

  void key(std::string_view name, int64_t& value, Between range, Help) {
    if (const toml::node* node = find(name)) value = integer(name, *node, range);
  }

  void key(std::string_view name, double& value, Between range, Help) {
    const toml::node* node = find(name);
    if (node == nullptr) return;
    if (!node->is_number()) refuse(name, *node, "a number " + range_text(range));
    const double number =
        node->is_integer() ? static_cast<double>(node->as_integer()->get()) : node->as_floating_point()->get();
    if (!(number >= range.least && number <= range.most)) refuse(name, *node, "a number " + range_text(range));
    value = number == 0 ? 0 : number;  // -0 would dump differently from 0
  }

  void key(std::string_view name, bool& value, Help) {
    const toml::node* node = find(name);
    if (node == nullptr) return;
    if (!node->is_boolean()) refuse(name, *node, "true or false");
    value = node->as_boolean()->get();
  }

  void key(std::string_view name, std::vector<int64_t>& value, Between range, Help) {
    const toml::node* node = find(name);
    if (node == nullptr) return;
    const toml::array* list = node->as_array();
    if (list == nullptr || list->size() > kMaxListEntries) refuse(name, *node, "a list of at most 256 integers");
    value.clear();
    for (const toml::node& entry : *list) value.push_back(integer(name, entry, range));
  }

  template <class Enum>
  requires std::is_enum_v<Enum>
  void key(std::string_view name, Enum& value, Help) {
    const toml::node* node = find(name);
    if (node == nullptr) return;
    constexpr auto& names = EnumNames<Enum>::names;
    const auto found = node->is_string() ? std::find(names.begin(), names.end(), node->as_string()->get()) : names.end();
    if (found == names.end()) refuse(name, *node, fmt::format("one of \"{}\"", fmt::join(names, "\", \"")));
    value = static_cast<Enum>(found - names.begin());
  }

  void key(std::string_view name, ScoringMode& value, Help) {
    const toml::node* node = find(name);
    if (node == nullptr) return;
    const auto found = node->is_string() ? scoring_mode(node->as_string()->get()) : std::nullopt;
    if (!found) refuse(name, *node, fmt::format("one of \"{}\"", fmt::join(scoring_modes(), "\", \"")));
    value = *found;
  }

 private:
  const toml::node* find(std::string_view name) {
    known_.push_back(name);
    return table_.get(name);
  }

  int64_t integer(std::string_view name, const toml::node& node, Between range) const {
    const std::string wanted = "an integer " + range_text(range);
    if (!node.is_integer()) refuse(name, node, wanted);
    const int64_t number = node.as_integer()->get();
    if (number < static_cast<int64_t>(range.least) || number > static_cast<int64_t>(range.most)) refuse(name, node, wanted);
    return number;
  }

  void refuse_unknown() const {
    for (const auto& [key, node] : table_) {
      if (std::find(known_.begin(), known_.end(), key.str()) != known_.end()) continue;
      const std::string typed = prefix_ + std::string(key.str());
      std::vector<std::string> keys;
      for (const KeyInfo& info : recipe_keys()) keys.push_back(info.key);
      std::vector<std::string> nearest = nearest_keys(typed, keys);
      nearest.resize(std::min(nearest.size(), kMostSuggested));
      throw InputError(fmt::format("{}: unknown key \"{}\"; the nearest {} \"{}\"", place(key.source()), clipped(typed),
                                   nearest.size() == 1 ? "key is" : "keys are", fmt::join(nearest, "\", \"")));
    }
  }

  [[noreturn]] void refuse(std::string_view name, const toml::node& node, const std::string& wanted) const {
    throw InputError(fmt::format("{}: {}{} = {}, expected {}", place(node.source()), prefix_, name, shown(node), wanted));
  }

  std::string place(const toml::source_region& region) const {
    return source_.has_lines ? fmt::format("{}:{}", source_.name, region.begin.line) : std::string(source_.name);
  }

  const toml::table& table_;
  std::string prefix_;
  Source source_;
  std::vector<std::string_view> known_;
};

void refuse_long_lines(std::string_view text, std::string_view source) {
  for (size_t begin = 0, line = 1; begin < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view content = text.substr(begin, end - begin);
    if (content.size() > kMaxLine || std::count(content.begin(), content.end(), '.') > kMaxDotsPerLine) {
      throw InputError(fmt::format("{}:{}: the line has {} characters; a recipe's lines have at most {}, and at most {} dots",
                                   source, line, content.size(), kMaxLine, kMaxDotsPerLine));
    }
    begin = end + 1;
  }
}

// TOML has letters beyond ASCII in comments and strings alone, and toml++ 3.3 takes most of them elsewhere for code that is
// never reached. Strings of several lines, where it looks for blanks too, may not have them either.
void refuse_stray_letters(std::string_view text, std::string_view source) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  char quote = 0;  // of the string that is open
  bool several = false, comment = false;
  size_t line = 1;
  for (size_t i = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c >= '\n' && c <= '\r') {  // toml++ ends lines at any of them
      if (c == '\n') ++line;
      comment = false;
      if (!several) quote = 0;
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      if (!comment && (quote == 0 || several))
        throw InputError(
            fmt::format("{}:{}: a character outside of ASCII; expected such ones in comments and \"strings\" of one "
                        "line alone",
                        source, line));
    } else if (comment) {
      continue;
    } else if (quote == 0) {
      if (c == '#') comment = true;
      if (c != '"' && c != '\'') continue;
      several = text.substr(i, 3) == std::string(3, c);
      quote = c;
      if (several) i += 2;
    } else if (c == '\\' && quote == '"') {
      if (i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0x80 && text[i + 1] != '\n') ++i;
    } else if (c == quote && (!several || text.substr(i, 3) == std::string(3, c))) {
      if (several) i = std::min(text.find_first_not_of(c, i), i + 5) - 1;  // one or two quotes may stand before the last three
      quote = 0;
      several = false;
    }
  }
}

toml::table parse_toml(std::string_view text, std::string_view source) {
  refuse_long_lines(text, source);
  refuse_stray_letters(text, source);
  try {
    return toml::parse(text, std::string(source));
  } catch (const toml::parse_error& error) {
    throw InputError(fmt::format("{}:{}:{}: not valid TOML: {}", source, error.source().begin.line, error.source().begin.column,
                                 clipped(error.description())));
  }
}

}  // namespace

Recipe parse_recipe(std::string_view text, std::string_view source, const Recipe& defaults) {
  if (const std::string base = extended_by(text, source); !base.empty())
    throw InputError(fmt::format("{}: extends \"{}\"; expected a whole recipe here, as `fairway recipe show` prints it", source,
                                 clipped(base)));
  return parse_layer(text, source, defaults);
}

Recipe parse_layer(std::string_view text, std::string_view source, const Recipe& base) {
  Recipe recipe = base;
  toml::table table = parse_toml(text, source);
  table.erase(kExtends);
  Reader::read(recipe, table, "", Source{source, true});
  return recipe;
}

std::string extended_by(std::string_view text, std::string_view source) {
  if (text.find(kExtends) == std::string_view::npos) return "";  // most do not, and need not be parsed twice
  const toml::table table = parse_toml(text, source);
  const toml::node* node = table.get(kExtends);
  if (node == nullptr) return "";
  if (!node->is_string() || node->as_string()->get().empty())
    throw InputError(fmt::format("{}:{}: {} = {}, expected the name of a built-in recipe or the path of a TOML file", source,
                                 node->source().begin.line, kExtends, shown(*node)));
  return node->as_string()->get();
}

void apply_override(Recipe& recipe, std::string_view key_equals_value) {
  const std::string source = "--set " + clipped(key_equals_value);
  const size_t equals = key_equals_value.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    throw InputError(source + ": expected key=value, for example optim.matrix.lr=0.02");
  }
  std::string key(key_equals_value.substr(0, equals));
  key.erase(key.find_last_not_of(' ') + 1);
  const std::string value(key_equals_value.substr(equals + 1));
  const bool plain_key =
      std::all_of(key.begin(), key.end(), [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.'; });
  if (!plain_key || key.empty()) throw InputError(source + ": expected a dotted key before \"=\", for example optim.matrix.lr");
  if (value.find('\n') != std::string::npos) throw InputError(source + ": expected a value on one line");
  toml::table table;
  try {
    table = parse_toml(key + " = " + value + "\n", source);
  } catch (const InputError&) {
    // A word needs no quotes on the command line: --set model.smear=input.
    const auto in_word = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-' || c == '+'; };
    const bool word =
        !value.empty() && value.front() != '-' && value.front() != '+' && std::all_of(value.begin(), value.end(), in_word);
    if (!word) throw;
    table = parse_toml(key + " = \"" + value + "\"\n", source);
  }
  Recipe changed = recipe;
  Reader::read(changed, table, "", Source{source, false});
  recipe = changed;
}

}  // namespace fairway
