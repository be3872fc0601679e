// What every scoring mode is: a function from weights, stream and settings to the ledger's records (scoring spec §3.1). One
// file for each mode; nothing here opens files, so that a score comes from the given bytes alone.
#pragma once

#include <functional>
#include <memory>

#include "comm/communicator.h"
#include "score/eval_model.h"
#include "score/ledger.h"
#include "tokenizer/byte_tables.h"

namespace fairway {

// Evaluators that break a rule on purpose, for the audit to catch (scoring spec §3.2, T10).
enum class NegativeControl : uint8_t {
  none,
  slot_shared_context,
  ttt_train_first,
  lora_length_sorted,
  double_count,
  broken_mask
};

struct ScoreSettings {
  ScoreRecipe score;
  NegativeControl control = NegativeControl::none;
  // Learning rates of ttt fall over the chunks of this many targets, a constant of the benchmark; 0: of the stream.
  int64_t schedule_targets = 0;
  // Records of plain and sliding windows have no digests: for scores that nobody audits.
  bool losses_only = false;
};

bool is_legal(const ScoreSettings& settings);
// No state goes from one window to the next: each rank may score windows of its own. Hints of a tilt are no state, every rank
// makes them from the stream.
bool can_share(const ScoreSettings& settings);

// Where the weights come from: called at the start of every run, so that no run sees what an earlier one has learned.
using WeightLoader = std::function<void(ParamStore&)>;

struct ScoredModel {
  Recipe recipe;
  ModelStage stage;
  WeightLoader load;
  ByteTables bytes;  // only the published n-gram experts look at them
};

struct ScoreContext {
  Executor* executor = nullptr;
  ThreadPool* pool = nullptr;
  // Those who work on one run() together, in modes whose state goes through the stream. Of modes that can_share() each rank
  // works alone, by run_share().
  Communicator* comm = &single_process();
};

// What a run spent on forward passes over windows and on learning; the rest is overhead.
struct ScoreCost {
  struct Part {
    int64_t tokens = 0;  // every pass over a token counts
    double seconds = 0;
  };
  Part forward, learning;
};

using ScoreProgress = std::function<void(int64_t done, int64_t total)>;

class Evaluator {
 public:
  virtual ~Evaluator() = default;
  // Scores every target of the ledger's stream that it wants. The ledger is new. Legal modes that cannot share do so together
  // with the context's ranks: all call it, and each ends with the ledger that one process would write, bit for bit.
  virtual void run(ScoreLedger& ledger, const ScoreProgress& progress) = 0;
  // What rank `rank` of `ranks` has to score, by share_of_windows(). The ledger is new and holds that share afterwards; merged
  // in the order of the ranks, the shares are what run() writes, bit for bit. For modes that can_share().
  virtual void run_share(ScoreLedger& ledger, int64_t rank, int64_t ranks, const ScoreProgress& progress);
  virtual ScoreCost cost() const { return {}; }  // of the last run; nothing where a mode has no windows
  // Seconds that `targets` would take, from timings of this machine on made-up tokens.
  virtual double estimate(int64_t targets) = 0;
};

// InputError for settings that this model cannot be scored with.
std::unique_ptr<Evaluator> make_evaluator(const ScoredModel& model, const ScoreSettings& settings, const ScoreContext& context);

// A new ledger of the kind the settings call for.
ScoreLedger make_ledger(std::span<const uint16_t> stream, const ScoreSettings& settings);

// The files of the modes.
std::unique_ptr<Evaluator> make_window_evaluator(const ScoredModel&, const ScoreSettings&, const ScoreContext&);
std::unique_ptr<Evaluator> make_slot_evaluator(const ScoredModel&, const ScoreSettings&, const ScoreContext&);
std::unique_ptr<Evaluator> make_shared_slot_evaluator(const ScoredModel&, const ScoreSettings&, const ScoreContext&);
std::unique_ptr<Evaluator> make_published_ngram_evaluator(const ScoredModel&, const ScoreSettings&, const ScoreContext&);
std::unique_ptr<Evaluator> make_ttt_evaluator(const ScoredModel&, const ScoreSettings&, const ScoreContext&);
std::unique_ptr<Evaluator> make_lora_evaluator(const ScoredModel&, const ScoreSettings&, const ScoreContext&);

}  // namespace fairway
