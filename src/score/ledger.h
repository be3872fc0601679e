// The rules of scoring as a type (scoring spec §3): each target's score is written once, and only the ledger hands out tokens
// to learn from, those that it has scored. A target is named by its token's index in the stream: x_1 … x_T.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace fairway {

// A target scored twice, or tokens asked for before their score: an evaluator that breaks the rules ends here.
class RuleBroken : public WorkError {
 public:
  using WorkError::WorkError;
};

struct TargetScore {
  float nll = 0;        // nats
  uint64_t digest = 0;  // of the whole distribution, see distribution.h
  float tilt = 0;       // what a tilt added to the NLL
};

// interleaved: each target of the interval was scored, then learned from, before the next one was scored.
enum class EventKind : uint8_t { score, update, interleaved };
// What an update reaches: the scores of one window, or everything that is scored later.
enum class UpdateScope : uint8_t { window, stream };

struct ScoreEvent {
  EventKind kind = EventKind::score;
  UpdateScope scope = UpdateScope::stream;
  int64_t begin = 0, end = 0;  // targets
  int32_t version_before = 0, version_after = 0;
};

// Targets [begin, end) with the token before them: everything a learner may read.
class ScoredTokens {
 public:
  int64_t begin() const { return begin_; }
  int64_t end() const { return begin_ + count(); }
  int64_t count() const { return static_cast<int64_t>(tokens_.size()) - 1; }
  std::span<const uint16_t> inputs() const { return tokens_.first(tokens_.size() - 1); }  // x_{begin−1} … x_{end−2}
  std::span<const uint16_t> targets() const { return tokens_.subspan(1); }                // x_begin … x_{end−1}

 private:
  friend class ScoreLedger;
  ScoredTokens(int64_t begin, std::span<const uint16_t> tokens) : begin_(begin), tokens_(tokens) {}
  int64_t begin_;
  std::span<const uint16_t> tokens_;
};

class ScoreLedger {
 public:
  explicit ScoreLedger(std::span<const uint16_t> stream);  // must outlive the ledger
  // For evaluators that are to be caught: broken rules are noted instead of refused, and tokens_not_scored() opens.
  static ScoreLedger unsafe_for_negative_control(std::span<const uint16_t> stream);

  std::span<const uint16_t> stream() const { return stream_; }
  int64_t targets() const { return stream_.empty() ? 0 : static_cast<int64_t>(stream_.size()) - 1; }  // T

  // Only targets [begin, end) are asked for: an evaluator may leave out the others, but for what these need. All, unless said.
  struct Wanted {
    int64_t begin, end;
  };
  void want(Wanted targets) { wanted_ = targets; }
  Wanted wanted() const { return wanted_; }

  // Makes this the ledger of one rank: targets [begin, end) are its to score, those before are scored by the ranks before it
  // and count as scored, since no path leads back from this share to them. `version`: of the state where the share begins.
  // Nothing is kept of targets outside.
  void take_share(int64_t begin, int64_t end, int32_t version);
  // A new ledger of the same stream and kind that has taken such a share.
  ScoreLedger share(int64_t begin, int64_t end, int32_t version) const;
  // Records and events of a share that follows all merged before it.
  void merge(const ScoreLedger& share);
  // A share of another process: what it has, and a new ledger of the same stream that becomes it.
  std::string share_bytes() const;
  void take_share_bytes(std::string_view bytes);

  void score(int64_t first, std::span<const TargetScore> scores);  // targets first, first+1, …
  ScoredTokens scored(int64_t begin, int64_t end) const;           // RuleBroken unless all of them have been scored
  ScoredTokens unsafe_for_negative_control(int64_t begin, int64_t end) const;
  void updated(const ScoredTokens& used, UpdateScope scope);  // said after state has absorbed them

  bool is_scored(int64_t target) const { return in_share(target) && times_[index(target)] > 0; }
  float nll(int64_t target) const { return nll_[index(target)]; }
  uint64_t digest(int64_t target) const { return digest_[index(target)]; }
  int32_t version(int64_t target) const { return version_[index(target)]; }
  int32_t times_scored(int64_t target) const { return times_[index(target)]; }
  int64_t scored_count() const { return scored_count_; }
  bool complete() const { return scored_count_ == targets(); }
  int32_t state_version() const { return state_version_; }
  double tilt_nats() const;  // what tilts added to the NLLs of all targets scored
  const std::vector<ScoreEvent>& events() const { return events_; }
  const std::vector<std::string>& broken_rules() const { return broken_; }

  // Whole distributions of a few targets, kept for the test of normalisation.
  void capture(std::span<const int64_t> targets);
  std::vector<float>* captured(int64_t target);  // null unless asked for
  const std::map<int64_t, std::vector<float>>& captures() const { return captures_; }

 private:
  ScoreLedger(std::span<const uint16_t> stream, int64_t begin, int64_t end);
  bool in_share(int64_t target) const { return target >= share_begin_ && target < share_end_; }
  size_t index(int64_t target) const;
  void write(int64_t target, const TargetScore& score, int32_t version);
  void broken(const std::string& sentence);
  void note(const ScoreEvent& event);

  std::span<const uint16_t> stream_;
  bool strict_ = true;
  Wanted wanted_{1, INT64_MAX};
  int64_t share_begin_, share_end_;  // targets [begin, end) are this ledger's; all of them but for a rank's
  std::vector<float> nll_;           // of the share's targets, like the three below
  std::vector<uint64_t> digest_;
  std::vector<int32_t> version_;
  std::vector<uint8_t> times_;
  int64_t scored_count_ = 0;
  int32_t state_version_ = 0;
  int64_t tilt_ = 0;  // in nats/2^30: a sum that is the same in any order
  std::vector<ScoreEvent> events_;
  std::vector<std::string> broken_;
  std::map<int64_t, std::vector<float>> captures_;
};

}  // namespace fairway
