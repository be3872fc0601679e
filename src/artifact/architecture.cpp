#include "artifact/architecture.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <type_traits>

#include "base/error.h"
#include "recipe/recipe.h"

namespace fairway {
namespace {

class Writer {
 public:
  Writer(std::string& out, std::string prefix) : out_(out), prefix_(std::move(prefix)) {}

  template <class T>
  void key(std::string_view name, const T& value, Between, Help help) {
    key(name, value, help);
  }
  template <class T>
  void key(std::string_view name, const T& value, Help) {
    out_ += fmt::format("{}{}={}\n", prefix_, name, spelled(value));
  }
  template <class T>
  void table(std::string_view name, const T& value, Help) {
    Writer inner(out_, fmt::format("{}{}.", prefix_, name));
    T::visit(value, inner);
  }

 private:
  static std::string spelled(bool value) { return value ? "1" : "0"; }
  static std::string spelled(int64_t value) { return fmt::format("{}", value); }
  static std::string spelled(double value) { return fmt::format("{}", value); }  // shortest digits that read back
  static std::string spelled(const std::vector<int64_t>& values) { return fmt::format("{}", fmt::join(values, ",")); }
  template <class Enum>
  requires std::is_enum_v<Enum>
  static std::string spelled(Enum value) { return std::string(name_of(value)); }

  std::string& out_;
  std::string prefix_;
};

using Lines = std::map<std::string_view, std::string_view>;

class Reader {
 public:
  Reader(Lines& lines, std::string prefix, const std::string& where)
      : lines_(lines), prefix_(std::move(prefix)), where_(where) {}

  void key(std::string_view name, int64_t& value, Between range, Help) {
    if (const auto text = take(name)) value = number<int64_t>(name, *text, range);
  }
  void key(std::string_view name, double& value, Between range, Help) {
    if (const auto text = take(name)) value = number<double>(name, *text, range);
  }
  void key(std::string_view name, bool& value, Help) {
    const auto text = take(name);
    if (!text) return;
    if (*text != "0" && *text != "1") refuse(name, *text, "0 or 1");
    value = *text == "1";
  }
  void key(std::string_view name, std::vector<int64_t>& value, Between range, Help) {
    const auto text = take(name);
    if (!text) return;
    value.clear();
    for (std::string_view rest = *text; !rest.empty();) {
      const size_t comma = std::min(rest.find(','), rest.size());
      value.push_back(number<int64_t>(name, rest.substr(0, comma), range));
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
  }
  template <class Enum>
  requires std::is_enum_v<Enum>
  void key(std::string_view name, Enum& value, Help) {
    const auto text = take(name);
    if (!text) return;
    constexpr auto& names = EnumNames<Enum>::names;
    const auto found = std::find(names.begin(), names.end(), *text);
    if (found == names.end()) refuse(name, *text, fmt::format("one of {}", fmt::join(names, ", ")));
    value = static_cast<Enum>(found - names.begin());
  }
  template <class T>
  void table(std::string_view name, T& value, Help) {
    Reader inner(lines_, fmt::format("{}{}.", prefix_, name), where_);
    T::visit(value, inner);
  }

 private:
  std::optional<std::string_view> take(std::string_view name) {
    const auto found = lines_.find(prefix_ + std::string(name));
    if (found == lines_.end()) return std::nullopt;
    const std::string_view text = found->second;
    lines_.erase(found);
    return text;
  }
  template <class T>
  T number(std::string_view name, std::string_view text, Between range) const {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const auto real = static_cast<double>(value);
    if (error != std::errc() || end != text.data() + text.size() || !(real >= range.least && real <= range.most))
      refuse(name, text, fmt::format("a number from {} to {}", range.least, range.most));
    return value;
  }
  [[noreturn]] void refuse(std::string_view name, std::string_view text, const std::string& wanted) const {
    std::string shown(text.substr(0, 40));
    for (char& c : shown) c = c < ' ' || c > '~' ? '?' : c;
    throw InputError(fmt::format("{}architecture: {}{} = {}, expected {}", where_, prefix_, name, shown, wanted));
  }

  Lines& lines_;
  std::string prefix_;
  const std::string& where_;
};

}  // namespace

std::string architecture_text(const ModelRecipe& model) {
  std::string out;
  Writer writer(out, "");
  ModelRecipe::visit(model, writer);
  return out;
}

ModelRecipe parse_architecture(std::string_view text, const std::string& where) {
  Lines lines;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = rest.find('\n');
    const size_t equals = rest.find('=');
    if (end == std::string_view::npos || equals > end) throw InputError(where + "architecture: a line is not name=value");
    if (!lines.emplace(rest.substr(0, equals), rest.substr(equals + 1, end - equals - 1)).second)
      throw InputError(where + "architecture: a key appears twice");
    rest.remove_prefix(end + 1);
  }
  Recipe recipe;
  Reader reader(lines, "", where);
  ModelRecipe::visit(recipe.model, reader);
  if (!lines.empty()) throw InputError(where + "architecture: has a key that this program does not know");
  // Only the model is stored; lengths that pass every check of the other tables.
  recipe.data.seq_len = recipe.train.micro_batch_tokens = recipe.train.batch_tokens = 1;
  recipe.score.context = recipe.score.stride = 1;
  recipe.train.emulated_world = 1;
  validate(recipe, where + "architecture");
  return recipe.model;
}

}  // namespace fairway
