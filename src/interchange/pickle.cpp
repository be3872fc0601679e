#include "interchange/pickle.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <set>

#include "base/error.h"
#include "interchange/limits.h"
#include "interchange/little_endian.h"

namespace fairway::interchange {
namespace {

using Kind = PickleValue::Kind;

constexpr std::string_view kOrderedDict = "collections\nOrderedDict";
constexpr std::array<std::string_view, 2> kCalls{kRebuildTensor, kRebuildParameter};
constexpr std::string_view kStorage = "Storage";

bool is_storage(std::string_view global) {  // "torch\nFloatStorage"
  constexpr std::string_view kModule = "torch\n";
  if (!global.starts_with(kModule) || !global.ends_with(kStorage)) return false;
  global.remove_prefix(kModule.size());
  return std::all_of(global.begin(), global.end(),
                     [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); });
}

bool is_known(std::string_view global) {
  return global == kOrderedDict || is_storage(global) || std::find(kCalls.begin(), kCalls.end(), global) != kCalls.end();
}

}  // namespace

class PickleMachine {
 public:
  PickleMachine(Pickle& pickle, std::string_view bytes) : pickle_(pickle), bytes_(bytes), left_(bytes) {}

  PickleRef run() {
    while (step()) {}
    if (!left_.empty()) fail(fmt::format("{} bytes follow its end", left_.size()));
    if (!marks_.empty()) fail(fmt::format("{} MARKs are never closed", marks_.size()));
    if (stack_.size() != 1) fail(fmt::format("it leaves {} values instead of one", stack_.size()));
    return stack_.back();
  }

 private:
  [[noreturn]] void fail(const std::string& sentence) const {
    pickle_.refuse(fmt::format("the pickle, byte {}: {}", bytes_.size() - left_.size(), sentence));
  }
  std::string_view take(uint64_t count, const char* what) {
    if (count > left_.size()) fail(fmt::format("{} of {} bytes runs past the end ({} left)", what, count, left_.size()));
    const std::string_view taken = left_.substr(0, count);
    left_.remove_prefix(count);
    return taken;
  }
  template <class Number>
  Number number(const char* what) {
    return number_at<Number>(take(sizeof(Number), what), 0);
  }

  PickleRef push(PickleValue value) {
    for (const PickleRef item : value.items) deepen(value, item);
    pickle_.values_.push_back(std::move(value));
    stack_.push_back(static_cast<PickleRef>(pickle_.values_.size() - 1));
    return stack_.back();
  }
  void push_integer(int64_t value) { push({.kind = Kind::integer, .integer = value}); }
  void deepen(PickleValue& holder, PickleRef item) const {
    const int depth = pickle_.values_[item].depth + 1;
    if (depth > kMostPickleDepth) fail(fmt::format("values are nested more than {} levels deep", kMostPickleDepth));
    holder.depth = std::max(holder.depth, static_cast<uint8_t>(depth));
  }
  // Values above the last mark belong to it: nothing below it can be popped.
  PickleRef pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) fail("a value is taken from an empty stack");
    const PickleRef ref = stack_.back();
    stack_.pop_back();
    return ref;
  }
  std::vector<PickleRef> pop_to_mark() {
    if (marks_.empty()) fail("a MARK is missing");
    std::vector<PickleRef> items(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return items;
  }
  PickleValue& holder(Kind kind) {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) fail("a value is taken from an empty stack");
    PickleValue& value = pickle_.values_[stack_.back()];
    if (value.kind != kind) fail(fmt::format("a {} is filled as a {}", name_of(value.kind), name_of(kind)));
    return value;
  }
  void fill(Kind kind, const std::vector<PickleRef>& items) {
    PickleValue& into = holder(kind);
    if (kind == Kind::dict && items.size() % 2 != 0) fail("a dict gets a key without a value");
    for (const PickleRef item : items) deepen(into, item);
    into.items.insert(into.items.end(), items.begin(), items.end());
  }
  void tuple(size_t count) {
    std::vector<PickleRef> items(count);
    for (size_t i = count; i-- > 0;) items[i] = pop();
    push({.kind = Kind::tuple, .items = std::move(items)});
  }

  void put(uint64_t index) {
    if (index >= bytes_.size()) fail(fmt::format("memo number {} is larger than the pickle", index));
    if (memo_.size() <= index) memo_.resize(index + 1, kUnset);
    const PickleRef value = pop();
    stack_.push_back(value);
    memo_[index] = value;
  }
  void get(uint64_t index) {
    if (index >= memo_.size() || memo_[index] == kUnset) fail(fmt::format("memo number {} was never set", index));
    stack_.push_back(memo_[index]);
  }

  std::string_view line() {
    const size_t end = left_.find('\n');
    if (end == std::string_view::npos) fail("a name has no end");
    const std::string_view text = take(end, "a name");
    take(1, "a name");
    return text;
  }
  void global() {
    const std::string_view begin = left_, module = line(), name = line();
    const std::string_view both =
        begin.substr(0, module.size() + 1 + name.size());  // as in the file, with a line's end between
    if (!is_known(both))
      fail(fmt::format("it asks for '{}.{}', which no state dict needs; nothing of it was executed", printable(module),
                       printable(name)));
    push({.kind = Kind::global, .text = both});
  }
  void reduce() {
    const PickleRef arguments = pop(), function = pop();
    const PickleValue &what = pickle_.values_[function], &with = pickle_.values_[arguments];
    if (what.kind != Kind::global || with.kind != Kind::tuple)
      fail(fmt::format("it calls a {} with a {}; expected a known name and a tuple", name_of(what.kind), name_of(with.kind)));
    if (what.text == kOrderedDict) {
      if (!with.items.empty()) fail("an OrderedDict is made with arguments");
      push({.kind = Kind::dict});
      return;
    }
    if (is_storage(what.text)) fail(fmt::format("it calls '{}', which is no function", printable(what.text)));
    push({.kind = Kind::call, .text = what.text, .items = {arguments}});
  }
  // State of an OrderedDict is its `_metadata`, which says nothing about weights.
  void build() {
    pop();
    holder(Kind::dict);
  }
  void long_integer() {
    const std::string_view digits = take(number<uint8_t>("a number"), "a number");
    if (digits.size() > 8) fail(fmt::format("a number of {} bytes; expected at most 8", digits.size()));
    uint64_t value = !digits.empty() && static_cast<int8_t>(digits.back()) < 0 ? ~uint64_t{0} : 0;
    for (size_t i = digits.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(digits[i]);
    push_integer(static_cast<int64_t>(value));
  }
  void real() {
    uint64_t bits = 0;
    for (const char c : take(8, "a number")) bits = bits << 8 | static_cast<uint8_t>(c);
    push({.kind = Kind::real, .real = std::bit_cast<double>(bits)});
  }
  bool step();
  bool step_on_stack(uint8_t code);

  static constexpr PickleRef kUnset = ~PickleRef{0};
  Pickle& pickle_;
  std::string_view bytes_, left_;
  std::vector<PickleRef> stack_, memo_;
  std::vector<size_t> marks_;
};

bool PickleMachine::step() {
  const auto code = static_cast<uint8_t>(take(1, "an opcode")[0]);
  switch (code) {
    case 0x80:
      if (const auto protocol = number<uint8_t>("the protocol"); protocol != 2)
        fail(fmt::format("protocol {}; expected 2, which torch.save writes", protocol));
      return true;
    case 'K': push_integer(number<uint8_t>("a number")); return true;
    case 'M': push_integer(number<uint16_t>("a number")); return true;
    case 'J': push_integer(number<int32_t>("a number")); return true;
    case 0x8A: long_integer(); return true;
    case 'G': real(); return true;
    case 'X': push({.kind = Kind::text, .text = take(number<uint32_t>("a text's length"), "a text")}); return true;
    case 'q': put(number<uint8_t>("a memo number")); return true;
    case 'r': put(number<uint32_t>("a memo number")); return true;
    case 'h': get(number<uint8_t>("a memo number")); return true;
    case 'j': get(number<uint32_t>("a memo number")); return true;
    case 'c': global(); return true;
    case '.': return false;
    default: return step_on_stack(code);
  }
}

bool PickleMachine::step_on_stack(uint8_t code) {
  switch (code) {
    case '}': push({.kind = Kind::dict}); return true;
    case ']': push({.kind = Kind::list}); return true;
    case ')': push({.kind = Kind::tuple}); return true;
    case 'N': push({}); return true;
    case 0x88: push({.kind = Kind::boolean, .integer = 1}); return true;
    case 0x89: push({.kind = Kind::boolean}); return true;
    case '(':
      if (marks_.size() >= static_cast<size_t>(kMostPickleDepth))
        fail(fmt::format("values are nested more than {} levels deep", kMostPickleDepth));
      marks_.push_back(stack_.size());
      return true;
    case 't': push({.kind = Kind::tuple, .items = pop_to_mark()}); return true;
    case 0x85:
    case 0x86:
    case 0x87: tuple(code - 0x84U); return true;
    case 'Q': push({.kind = Kind::persistent, .items = {pop()}}); return true;
    case 'R': reduce(); return true;
    case 'b': build(); return true;
    case 'a': fill(Kind::list, {pop()}); return true;
    case 'e': fill(Kind::list, pop_to_mark()); return true;
    case 's': {
      const PickleRef value = pop(), key = pop();
      fill(Kind::dict, {key, value});
      return true;
    }
    case 'u': fill(Kind::dict, pop_to_mark()); return true;
    default: fail(fmt::format("opcode 0x{:02X} is none that torch.save writes", code));
  }
}

Pickle::Pickle(std::string_view bytes, std::string where) : where_(std::move(where)) {
  if (bytes.size() > kMostPickleBytes)
    refuse(fmt::format("the pickle has {} bytes; expected at most {}", bytes.size(), kMostPickleBytes));
  top_ = PickleMachine(*this, bytes).run();
}

void Pickle::refuse(const std::string& sentence) const { throw InputError(where_ + ": " + sentence); }

std::vector<Pickle::Member> Pickle::members(PickleRef dict, const std::string& what) const {
  const PickleValue& value = values_[dict];
  if (value.kind != Kind::dict) refuse(fmt::format("{} is a {}; expected a dict", what, name_of(value.kind)));
  std::vector<Member> out;
  std::set<std::string_view> seen;
  for (size_t i = 0; i + 1 < value.items.size(); i += 2) {
    const PickleValue& key = values_[value.items[i]];
    if (key.kind != Kind::text) refuse(fmt::format("{} has a {} as key; expected names", what, name_of(key.kind)));
    if (!seen.insert(key.text).second) refuse(fmt::format("{} has '{}' twice", what, printable(key.text)));
    out.push_back({key.text, value.items[i + 1]});
  }
  return out;
}

std::string printable(std::string_view text) {
  std::string out(text.substr(0, 80));
  for (char& c : out)
    if (c < ' ' || c > '~') c = '?';
  return out;
}

std::string_view name_of(Kind kind) {
  constexpr std::array<std::string_view, 11> kNames{"None", "bool", "number",       "number",        "text", "tuple",
                                                    "list", "dict", "name of code", "persistent id", "call"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace fairway::interchange
