// What the ops' headers declare of their arguments, held against what backends do with them.
#include "ops/arguments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ops/compare.h"
#include "ops/cpu_backend.h"
#include "ops/ref_backend.h"

namespace fairway::ops_test {
namespace {

bool same_bits(const std::vector<Guarded>& a, const std::vector<Guarded>& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (!std::ranges::equal(a[i].bytes(), b[i].bytes())) return false;
  return true;
}

template <class Op>
class Needed {
 public:
  Needed(const OpCase<Op>& example, const BackendUnderTest<Op>& backend) : example_(example), backend_(backend) {
    plain_.forward(backend_, queue_);
    plain_.backward(backend_, {}, queue_);
  }
  // Whether backward gives other bits once these numbers are gone.
  bool needs(std::vector<Guarded> OpRun<Op>::*group, size_t index) {
    OpRun<Op> blind(example_, {});
    blind.forward(backend_, queue_);
    Guarded& gone = (blind.*group)[index];
    gone.set(std::vector<double>(static_cast<size_t>(gone.tensor().numel()), std::nan("")));
    blind.backward(backend_, {}, queue_);
    return !same_bits(plain_.din, blind.din);
  }

 private:
  const OpCase<Op>& example_;
  const BackendUnderTest<Op>& backend_;
  Queue queue_{1};
  OpRun<Op> plain_{example_, {}};
};

// What backward of a case needs, gathered over cases and backends.
template <class Op>
struct Gathered {
  Arguments declared = arguments_of(Op{});
  std::vector<bool> in = std::vector<bool>(declared.in.size()), out = std::vector<bool>(declared.out.size()),
                    saved = std::vector<bool>(declared.saved.size());

  void add(const OpCase<Op>& example, const BackendUnderTest<Op>& backend) {
    SCOPED_TRACE(std::string(backend.name) + ": " + example.label());
    Needed<Op> run(example, backend);
    const auto present = [&](size_t i) { return example.in[i].content != Content::absent; };
    for (size_t i = 0; i < in.size(); ++i) {
      if (!present(i) || declared.in[i].kind == ArgKind::index || !run.needs(&OpRun<Op>::in, i)) continue;
      in[i] = true;
      EXPECT_FALSE(declared.in[i].is_unread || passes_gradient(declared, i, present)) << "input " << i;
    }
    for (size_t i = 0; i < out.size(); ++i) out[i] = out[i] || run.needs(&OpRun<Op>::out, i);
    for (size_t i = 0; i < saved.size(); ++i) saved[i] = saved[i] || run.needs(&OpRun<Op>::saved, i);
  }

  void check() const {
    const bool stops = std::ranges::any_of(declared.in, [](const Arg& arg) { return arg.stops_gradients; });
    for (size_t i = 0; i < in.size(); ++i) {
      const Arg& arg = declared.in[i];
      if (arg.kind == ArgKind::index) continue;
      EXPECT_EQ(in[i], !arg.is_unread && (!arg.passes_gradient || stops)) << "input " << i;
    }
    for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], declared.out[i].is_reread) << "output " << i;
    for (size_t i = 0; i < saved.size(); ++i) EXPECT_TRUE(saved[i]) << "saved " << i;
  }
};

template <class Op>
void check_needed() {
  constexpr int64_t kMostElements = 3000;
  Gathered<Op> gathered;
  for (const OpCase<Op>& example : cases(Op{})) {
    int64_t elements = 0;
    for (const Slot& slot : example.in) elements += slot.content == Content::absent ? 0 : slot.shape.numel();
    if (elements > kMostElements) continue;
    gathered.add(example, ref_backend<Op>());
    gathered.add(example, cpu_backend<Op>());
    if (testing::Test::HasFailure()) return;
  }
  gathered.check();
}

// Cases leave out what may be left out, and indices are where they are declared.
template <class Op>
void check_cases() {
  const Arguments declared = arguments_of(Op{});
  std::vector<bool> absent(declared.in.size());
  for (const OpCase<Op>& example : cases(Op{})) {
    ASSERT_EQ(example.in.size(), declared.in.size());
    for (size_t i = 0; i < declared.in.size(); ++i) {
      const Slot& slot = example.in[i];
      if (slot.content == Content::absent) {
        absent[i] = true;
        continue;
      }
      const bool index = slot.content == Content::index || slot.content == Content::segments;
      EXPECT_EQ(index, declared.in[i].kind == ArgKind::index) << example.label() << ": input " << i;
      if constexpr (Differentiable<Op>) {
        EXPECT_EQ(slot.differentiated(), !index && !declared.in[i].is_constant) << "input " << i;
      }
    }
  }
  for (size_t i = 0; i < absent.size(); ++i) EXPECT_EQ(absent[i], declared.in[i].is_optional) << "input " << i;
}

#define FAIRWAY_OP(Op)  \
  TEST(Arguments, Op) { \
    check_cases<Op>();  \
    check_needed<Op>(); \
  }
#define FAIRWAY_PLAIN_OP(Op) \
  TEST(Arguments, Op) { check_cases<Op>(); }
#include "ops/ops.def"
#undef FAIRWAY_OP
#undef FAIRWAY_PLAIN_OP

TEST(Arguments, AreReadByName) {
  const std::vector<int> saved{7, 8};
  EXPECT_EQ(by_name<Mlp::SavedOf>(saved).post, 8);
  std::vector<int> in{1, 2, 3, 4};
  places_by_name<Skip::InOf>(in).gate = 9;
  EXPECT_EQ(in[3], 9);
}

}  // namespace
}  // namespace fairway::ops_test
