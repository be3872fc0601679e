#include "recipe/recipe_json.h"

#include <type_traits>

namespace fairway {
namespace {

class JsonWriter {
 public:
  explicit JsonWriter(nlohmann::ordered_json& out) : out_(out) {}

  template <class T>
  void key(std::string_view name, const T& value, Between, Help) {
    out_[std::string(name)] = value;
  }
  template <class T>
  void key(std::string_view name, const T& value, Help) {
    if constexpr (std::is_enum_v<T> || std::is_same_v<T, ScoringMode>) {
      out_[std::string(name)] = std::string(name_of(value));
    } else {
      out_[std::string(name)] = value;
    }
  }
  template <class T>
  void table(std::string_view name, const T& value, Help) {
    nlohmann::ordered_json inner = nlohmann::ordered_json::object();
    JsonWriter writer(inner);
    T::visit(value, writer);
    out_[std::string(name)] = std::move(inner);
  }

 private:
  nlohmann::ordered_json& out_;
};

}  // namespace

nlohmann::ordered_json to_json_value(const Recipe& recipe) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  JsonWriter writer(out);
  Recipe::visit(recipe, writer);
  return out;
}

}  // namespace fairway
