// Which of two sides predicts a text better, document by document. Two questions have two answers:
// - these models: the runs are what they are, the text is a sample of documents. Documents are drawn again with replacement
//   (bootstrap of the ratio Σ bits / Σ bytes) and both sides are read on the same draw, so that what makes a document hard
//   cancels.
// - these recipes: other seeds would have given other models, so the spread of the seeds joins that of the documents. Nothing
//   can be said where no side has two runs.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "analysis/statistics.h"
#include "base/thread_pool.h"

namespace fairway {

struct DocumentSample {
  std::vector<double> bytes;                  // of each document
  std::vector<std::vector<double>> runs;      // [run][document], bits
  std::vector<std::vector<double>> baseline;  // the same of the other side
  bool paired_seeds = false;                  // run i has the seed of baseline i: their differences are what spreads
};

struct Resampling {
  int64_t draws = 4000;
  uint64_t seed = 20240520;  // the same interval every time, for any number of threads
};

// What can be said of the difference in bits per byte, runs minus baseline.
struct Statement {
  Difference difference;
  Interval interval;
  double p = 1;           // two-sided
  double detectable = 0;  // a difference of this size would be found at p < 0.05 in four cases of five
};

struct DocumentTest {
  Statement models;
  std::optional<Statement> recipes;
  double seed_error = 0;                // of the recipes' difference: what the seeds contribute, on this text
  bool borrowed_spread = false;         // one side has a single run; it was given the other side's spread
  std::optional<int64_t> seeds_needed;  // a side, for p < kRecordP of the test over seeds, if the difference is what it seems
};
inline constexpr int64_t kMostSeeds = 10000;  // more are not looked for

// At least two documents and a run on each side; documents of zero bytes are allowed, a text of none is not.
DocumentTest test_documents(const DocumentSample& sample, const Resampling& resampling, ThreadPool& pool);

}  // namespace fairway
