// What an argument of an op is. Each op declares it once, beside the argument: kIn, kOut and kSaved. Element types on a device,
// shared gradients, counts of traffic and tests follow these declarations; ops/arguments.h reads them of any op.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace fairway {

enum class ArgKind : uint8_t {
  activation,  // numbers of tokens: in the working precision, bf16 on a device
  matrix,      // a weight or a table: read in the working precision, its gradient is summed in float
  vector,      // scales, gates and angles: float
  statistic,   // one number or a few of each row, and losses: float
  index,       // i32: tokens, rows, positions
  update,      // of a matrix, on its way there: in the working precision
  state,       // memory that keeps the type it was made with: of the optimizer, the quantizer, a cache
};

struct Arg {
  constexpr explicit Arg(ArgKind of) : kind(of) {}  // and no other, so that none of an op's arguments is forgotten

  ArgKind kind;
  bool is_optional = false;      // may be absent
  bool is_constant = false;      // has no gradient though its kind could
  bool is_unread = false;        // an input whose numbers backward does not need: it has none, or something saved stands for it
  bool is_reread = false;        // an output whose numbers backward needs
  bool passes_gradient = false;  // y = x + …: d x is d y, and backward leaves d x alone where it lies in d y's place
  bool stops_gradients = false;  // where this one is present, passes_gradient of the others does not hold

  constexpr Arg optional() const { return with(&Arg::is_optional); }
  constexpr Arg constant() const { return with(&Arg::is_constant); }
  constexpr Arg unread() const { return with(&Arg::is_unread); }
  constexpr Arg reread() const { return with(&Arg::is_reread); }
  constexpr Arg passes() const { return with(&Arg::passes_gradient); }
  constexpr Arg stops_passing() const { return with(&Arg::stops_gradients); }

  // Whether a device computes with it in bf16.
  constexpr bool in_working_precision() const {
    return kind == ArgKind::activation || kind == ArgKind::matrix || kind == ArgKind::update;
  }

 private:
  constexpr Arg with(bool Arg::*flag) const {
    Arg out = *this;
    out.*flag = true;
    return out;
  }
};

namespace arg {
inline constexpr Arg activation{ArgKind::activation}, matrix{ArgKind::matrix}, vector{ArgKind::vector},
    statistic{ArgKind::statistic}, index{ArgKind::index}, update{ArgKind::update}, state{ArgKind::state};
}

// Members of an argument struct: InOf<char> has one byte for each.
template <template <class> class Args>
inline constexpr size_t member_count = sizeof(Args<char>);

// The elements of a list under the names of an op's arguments: by_name<Mlp::SavedOf>(call.saved).post.
template <template <class> class Args, class List>
constexpr auto by_name(const List& list) {
  return [&]<size_t... i>(std::index_sequence<i...>) { return Args<std::decay_t<decltype(list[0])>>{list[i]...}; }
  (std::make_index_sequence<member_count<Args>>());
}
// The same, to be changed in the list.
template <template <class> class Args, class List>
constexpr auto places_by_name(List& list) {
  return [&]<size_t... i>(std::index_sequence<i...>) { return Args<decltype(list[0])>{list[i]...}; }
  (std::make_index_sequence<member_count<Args>>());
}

}  // namespace fairway
