// Every sample of a published format gives the weights that it was made from: bit for bit, or the loss that was stated with it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "interchange/fit.h"
#include "interchange/guess_recipe.h"
#include "interchange/samples.h"

namespace fairway::interchange {
namespace {

void expect_fits(const WeightSet& set, const std::string& golden) {
  const Fit fit = fit_of(set, golden_recipe(golden).model);
  EXPECT_TRUE(fit.whole()) << set.name << ": " << fit.sentence();
}

TEST(ImportSamples, AreTheGoldensBitForBit) {
  for (const char* sample : {"pr1105_tiny.pt", "pr1584_tiny.pt", "pr1584_tiny_unbanked.pt", "best_tiny.pt"}) {
    SCOPED_TRACE(sample);
    const WeightSet set = sample_set(sample);
    expect_fits(set, golden_of(sample));
    const Safetensors golden = golden_file(golden_of(sample));
    const Loaded loaded = load(set, golden_recipe(golden_of(sample)), false);
    EXPECT_GT(loaded.params->banks().size(), 10U);
    for (const ParamBank& bank : loaded.params->banks()) {
      const Tensor want = golden.get("param." + bank.info.name);
      ASSERT_EQ(want.spec, bank.value.spec) << bank.info.name;
      EXPECT_EQ(std::memcmp(bank.value.data, want.data, want.spec.bytes()), 0) << bank.info.name;
    }
    EXPECT_TRUE(loaded.not_finite.empty());
    EXPECT_TRUE(loaded.rounded.empty());
  }
}

struct StatedLoss {
  const char* sample;
  double loss, with_rounded_tables;  // 0: not stated
};
constexpr StatedLoss kLosses[]{
    {"pr1105_tiny_mixed.pt", 7.440406441395, 7.440406441395},  // its tables are bf16 already
    {"pr1105_tiny_bf16.pt", 7.441869326273, 7.441869326273},    {"record_tiny_mixed.pt", 10.456765048599, 10.456765048599},
    {"pr1105_tiny.int6.ptz", 7.346930452372, 7.348108078832},   {"pr1105_tiny.brotli.ptz", 7.346930452372, 7.348108078832},
    {"pr1584_tiny.int6.ptz", 9.122267571664, 9.123289100836},   {"best_tiny.brotli.ptz", 10.449037332494, 10.447108533667},
    {"record_tiny.pgrp2.ptz", 10.359447808882, 10.358494925111}};

void expect_loss(const StatedLoss& stated) {
  SCOPED_TRACE(stated.sample);
  const WeightSet set = sample_set(stated.sample);
  expect_fits(set, golden_of(stated.sample));
  EXPECT_LE(std::abs(loss_with(set, golden_of(stated.sample), false) / stated.loss - 1), 1e-6);
  EXPECT_LE(std::abs(loss_with(set, golden_of(stated.sample), true) / stated.with_rounded_tables - 1), 1e-6);
}

TEST(ImportSamples, HaveTheStatedLosses) {
  for (const StatedLoss& stated : kLosses) expect_loss(stated);
}

TEST(ImportSamples, OfLrzipHaveTheStatedLoss) {
  if (!lrzip_is_installed()) GTEST_SKIP() << "lrzip is not installed: best_tiny.pgrp1.ptz was not read";
  expect_loss({"best_tiny.pgrp1.ptz", 10.449037332494, 10.447108533667});
}

TEST(ImportSamples, SaySoWhereConstantsAreLeftOut) {
  for (const char* sample : {"record_tiny_mixed.pt", "record_tiny.pgrp2.ptz"}) {
    const Fit fit = fit_of(sample_set(sample), golden_recipe("best_tiny_plain").model);
    EXPECT_EQ(fit.ignored, (std::vector<std::string>{"softcap_neg", "softcap_pos"})) << sample;
  }
}

}  // namespace
}  // namespace fairway::interchange
