// The recipe written back: canonical TOML and the table of keys.
#include <fmt/format.h>

#include <cstdint>
#include <type_traits>

#include "recipe/recipe.h"

namespace fairway {
namespace {

std::string spelled(int64_t value) { return fmt::format("{}", value); }
std::string spelled(bool value) { return value ? "true" : "false"; }
std::string spelled(double value) {
  const std::string text = fmt::format("{}", value);  // the shortest digits that read back to the same number
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}
std::string spelled(const std::vector<int64_t>& values) { return fmt::format("[{}]", fmt::join(values, ", ")); }
template <class Enum>
requires std::is_enum_v<Enum> std::string spelled(Enum value) { return fmt::format("\"{}\"", name_of(value)); }

std::string spelled(const ScoringMode& mode) { return fmt::format("\"{}\"", name_of(mode)); }

// A table's own keys must precede its first sub-table, so visit() runs twice over each struct.
class TomlWriter {
 public:
  TomlWriter(std::string& out, std::string path, bool tables) : out_(out), path_(std::move(path)), tables_(tables) {}

  template <class T>
  static void write(std::string& out, const T& value, const std::string& path) {
    for (const bool tables : {false, true}) {
      TomlWriter writer(out, path, tables);
      T::visit(value, writer);
    }
  }

  template <class T>
  void key(std::string_view name, const T& value, Between, Help help) {
    key(name, value, help);
  }
  template <class T>
  void key(std::string_view name, const T& value, Help) {
    if (!tables_) out_ += fmt::format("{} = {}\n", name, spelled(value));
  }
  template <class T>
  void table(std::string_view name, const T& value, Help) {
    if (!tables_) return;
    const std::string path = path_.empty() ? std::string(name) : path_ + "." + std::string(name);
    out_ += fmt::format("{}[{}]\n", out_.empty() ? "" : "\n", path);
    write(out_, value, path);
  }

 private:
  std::string& out_;
  std::string path_;
  bool tables_;
};

class KeyLister {
 public:
  KeyLister(std::vector<KeyInfo>& out, std::string prefix) : out_(out), prefix_(std::move(prefix)) {}

  void key(std::string_view name, int64_t value, Between range, Help help) { add(name, "integer", value, range, help); }
  void key(std::string_view name, double value, Between range, Help help) { add(name, "number", value, range, help); }
  void key(std::string_view name, const std::vector<int64_t>& value, Between range, Help help) {
    add(name, "list of integers", value, range, help);
  }
  void key(std::string_view name, bool value, Help help) {
    out_.push_back({prefix_ + std::string(name), "boolean", spelled(value), "true, false", std::string(help.text)});
  }
  template <class Enum>
  requires std::is_enum_v<Enum>
  void key(std::string_view name, Enum value, Help help) {
    out_.push_back({prefix_ + std::string(name), "word", spelled(value),
                    fmt::format("{}", fmt::join(EnumNames<Enum>::names, ", ")), std::string(help.text)});
  }
  void key(std::string_view name, const ScoringMode& value, Help help) {
    out_.push_back({prefix_ + std::string(name), "word", spelled(value), fmt::format("{}", fmt::join(scoring_modes(), ", ")),
                    std::string(help.text)});
  }
  template <class T>
  void table(std::string_view name, const T& value, Help) {
    KeyLister inner(out_, prefix_ + std::string(name) + ".");
    T::visit(value, inner);
  }

 private:
  template <class T>
  void add(std::string_view name, std::string_view type, const T& value, Between range, Help help) {
    out_.push_back({prefix_ + std::string(name), std::string(type), spelled(value),
                    fmt::format("{} … {}", range.least, range.most), std::string(help.text)});
  }

  std::vector<KeyInfo>& out_;
  std::string prefix_;
};

}  // namespace

std::string to_toml(const Recipe& recipe) {
  std::string out;
  TomlWriter::write(out, recipe, "");
  return out;
}

std::vector<KeyInfo> recipe_keys() {
  std::vector<KeyInfo> keys;
  KeyLister lister(keys, "");
  const Recipe defaults;
  Recipe::visit(defaults, lister);
  return keys;
}

}  // namespace fairway
