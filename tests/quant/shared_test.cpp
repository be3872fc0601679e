// Models quantized by several ranks are those of one, tensor by tensor and report by report.
#include "quant/shared_tensors.h"

#include <gtest/gtest.h>

#include "comm/thread_ranks.h"
#include "quant/bit_allocator.h"
#include "quant/small_model.h"

namespace fairway::quant_test {
namespace {

struct Made {
  QuantizedModel model;
  QuantReport report;
};

void expect_equal(const Made& have, const Made& want, int ranks) {
  EXPECT_TRUE(have.model == want.model) << ranks << " ranks";
  ASSERT_EQ(have.report.tensors.size(), want.report.tensors.size());
  for (size_t i = 0; i < want.report.tensors.size(); ++i) {
    EXPECT_EQ(to_bytes({{}, have.report.tensors[i]}), to_bytes({{}, want.report.tensors[i]}))
        << ranks << " ranks, " << want.report.tensors[i].name;
  }
}

template <class Body>
void expect_same_for_any_ranks(const Body& body) {
  const Made want = body(single_process());
  for (int ranks : {2, 3, 4}) {
    std::vector<Made> have(static_cast<size_t>(ranks));
    ThreadRanks(ranks).run([&](Communicator& comm) { have[static_cast<size_t>(comm.rank())] = body(comm); });
    for (const Made& of_rank : have) expect_equal(of_rank, want, ranks);
  }
}

TEST(SharedQuantizing, GivesTheModelOfOneRank) {
  expect_same_for_any_ranks([](Communicator& comm) {
    SmallModel small({"quant.lqer.tensors=2", "quant.mixed.count=3"});
    Made made;
    made.model = quantize_model(small.weights, small.recipe, &small.hessians, small.queue, made.report, comm);
    return made;
  });
}

TEST(SharedQuantizing, AllocatesTheSameBits) {
  expect_same_for_any_ranks([](Communicator& comm) {
    SmallModel small;
    BitAllocator allocator(small.weights, small.recipe, &small.hessians, small.queue, comm);
    Made made;
    made.model = allocator.at(0.5 * (allocator.least_bits() + allocator.most_bits()), made.report);
    return made;
  });
}

TEST(SharedQuantizing, PartsSurviveTheirBytes) {
  SmallModel small({"quant.lqer.tensors=2"});
  QuantReport report;
  const QuantizedModel model = small.quantize(report);
  for (size_t i = 0; i < model.tensors.size(); ++i) {
    const QuantizedPart part{model.tensors[i], report.tensors[i]};
    const std::string bytes = to_bytes(part);
    EXPECT_TRUE(part_from_bytes(bytes).tensor == part.tensor) << report.tensors[i].name;
    EXPECT_EQ(to_bytes(part_from_bytes(bytes)), bytes) << report.tensors[i].name;
  }
}

}  // namespace
}  // namespace fairway::quant_test
