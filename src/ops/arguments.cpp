#include "ops/arguments.h"

namespace fairway {
namespace {

template <class Args>
std::span<const Arg> as_list(const Args& args) {
  static_assert(sizeof(Args) % sizeof(Arg) == 0);
  return {reinterpret_cast<const Arg*>(&args), sizeof(Args) / sizeof(Arg)};
}

}  // namespace

Arguments arguments_of(const AnyOp& any) {
  return std::visit(
      []<class Op>(const Op&) -> Arguments {
        Arguments all;
        if constexpr (!std::is_same_v<Op, std::monostate>) {
          all.in = as_list(Op::kIn);
          if constexpr (!std::is_same_v<typename Op::Out, None>) all.out = as_list(Op::kOut);
          if constexpr (!std::is_same_v<typename Op::Saved, None>) all.saved = as_list(Op::kSaved);
        }
        return all;
      },
      any);
}

}  // namespace fairway
