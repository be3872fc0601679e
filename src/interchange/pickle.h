// Python's pickle as data: the parser builds a tree of plain values and executes nothing. It knows the opcodes that torch.save
// writes (protocol 2) and the names that a state dict needs; any other opcode or name is refused before anything is made of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fairway::interchange {

// What a call may be of, as pickles spell it.
inline constexpr std::string_view kRebuildTensor = "torch._utils\n_rebuild_tensor_v2";
inline constexpr std::string_view kRebuildParameter = "torch._utils\n_rebuild_parameter";

using PickleRef = uint32_t;  // of a value in its Pickle

struct PickleValue {
  enum class Kind : uint8_t { none, boolean, integer, real, text, tuple, list, dict, global, persistent, call };
  Kind kind = Kind::none;
  uint8_t depth = 1;    // levels below and including this one
  int64_t integer = 0;  // boolean: 0 or 1
  double real = 0;
  std::string_view text;         // of a text; of a global or a call the module and the name, a line each
  std::vector<PickleRef> items;  // dict: key, value, key, value …; persistent: its id; call: the tuple of its arguments
};

class Pickle {
 public:
  // `bytes` outlive the pickle. `where` begins every InputError.
  Pickle(std::string_view bytes, std::string where);

  const PickleValue& operator[](PickleRef ref) const { return values_[ref]; }
  PickleRef top() const { return top_; }
  // Of a dict whose keys are texts, in order and each once; `what` names the dict when it is something else.
  struct Member {
    std::string_view key;
    PickleRef value;
  };
  std::vector<Member> members(PickleRef dict, const std::string& what) const;
  [[noreturn]] void refuse(const std::string& sentence) const;
  const std::string& where() const { return where_; }

 private:
  friend class PickleMachine;
  std::string where_;
  std::vector<PickleValue> values_;
  PickleRef top_ = 0;
};

std::string_view name_of(PickleValue::Kind kind);
std::string printable(std::string_view text);  // its beginning, for sentences: what cannot be printed is "?"

}  // namespace fairway::interchange
