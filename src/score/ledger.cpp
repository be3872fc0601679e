#include "score/ledger.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace fairway {
namespace {

constexpr double kTiltUnits = 1 << 30;  // of a nat

}  // namespace

ScoreLedger::ScoreLedger(std::span<const uint16_t> stream)
    : ScoreLedger(stream, 1, std::max<int64_t>(1, static_cast<int64_t>(stream.size()))) {}

ScoreLedger::ScoreLedger(std::span<const uint16_t> stream, int64_t begin, int64_t end) : stream_(stream) {
  take_share(begin, end, 0);
}

ScoreLedger ScoreLedger::unsafe_for_negative_control(std::span<const uint16_t> stream) {
  ScoreLedger ledger(stream);
  ledger.strict_ = false;
  return ledger;
}

size_t ScoreLedger::index(int64_t target) const {
  FAIRWAY_ASSERT(in_share(target), "a target outside of the stream or of the share");
  return static_cast<size_t>(target - share_begin_);
}

void ScoreLedger::broken(const std::string& sentence) {
  if (strict_) throw RuleBroken(sentence);
  broken_.push_back(sentence);
}

void ScoreLedger::take_share(int64_t begin, int64_t end, int32_t version) {
  FAIRWAY_ASSERT(events_.empty() && begin >= 1 && begin <= end && end <= targets() + 1, "a share is taken before any score");
  share_begin_ = begin;
  share_end_ = end;
  state_version_ = version;
  const auto count = static_cast<size_t>(end - begin);
  nll_.assign(count, 0.0f);
  digest_.assign(count, 0);
  version_.assign(count, 0);
  times_.assign(count, 0);
}

ScoreLedger ScoreLedger::share(int64_t begin, int64_t end, int32_t version) const {
  ScoreLedger out(stream_, begin, end);
  out.strict_ = strict_;
  out.state_version_ = version;
  for (auto asked = captures_.lower_bound(begin); asked != captures_.end() && asked->first < end; ++asked)
    out.captures_[asked->first];
  return out;
}

void ScoreLedger::merge(const ScoreLedger& share) {
  FAIRWAY_ASSERT(share.targets() == targets(), "a share of another stream");
  for (int64_t target = share.share_begin_; target < share.share_end_; ++target) {
    const size_t at = share.index(target);
    if (share.times_[at] > 0) write(target, {share.nll_[at], share.digest_[at], 0}, share.version_[at]);
  }
  events_.insert(events_.end(), share.events_.begin(), share.events_.end());
  broken_.insert(broken_.end(), share.broken_.begin(), share.broken_.end());
  for (const auto& [target, values] : share.captures_)
    if (!values.empty()) captures_[target] = values;
  state_version_ = share.state_version_;
  tilt_ += share.tilt_;
}

void ScoreLedger::write(int64_t target, const TargetScore& score, int32_t version) {
  FAIRWAY_ASSERT(target >= 1 && target <= targets(), "a target outside of the stream");
  if (!in_share(target)) return broken(fmt::format("target {} belongs to another rank's share", target));
  const size_t at = index(target);
  if (times_[at] > 0) {
    broken(fmt::format("target {} was scored a second time", target));
    times_[at] = static_cast<uint8_t>(std::min(times_[at] + 1, 255));
    return;
  }
  nll_[at] = score.nll;
  digest_[at] = score.digest;
  version_[at] = version;
  times_[at] = 1;
  tilt_ += std::llround(static_cast<double>(score.tilt) * kTiltUnits);
  ++scored_count_;
}

double ScoreLedger::tilt_nats() const { return static_cast<double>(tilt_) / kTiltUnits; }

void ScoreLedger::score(int64_t first, std::span<const TargetScore> scores) {
  for (size_t i = 0; i < scores.size(); ++i) write(first + static_cast<int64_t>(i), scores[i], state_version_);
  const auto end = first + static_cast<int64_t>(scores.size());
  note({EventKind::score, UpdateScope::stream, first, end, state_version_, state_version_});
}

ScoredTokens ScoreLedger::scored(int64_t begin, int64_t end) const {
  FAIRWAY_ASSERT(begin >= 1 && begin <= end && end <= targets() + 1, "tokens outside of the stream");
  for (int64_t target = std::max(begin, share_begin_); target < end; ++target) {
    if (!is_scored(target)) throw RuleBroken(fmt::format("target {} was asked for before it was scored", target));
  }
  return {begin, stream_.subspan(static_cast<size_t>(begin - 1), static_cast<size_t>(end - begin + 1))};
}

ScoredTokens ScoreLedger::unsafe_for_negative_control(int64_t begin, int64_t end) const {
  FAIRWAY_ASSERT(!strict_, "tokens before their score are for negative controls only");
  FAIRWAY_ASSERT(begin >= 1 && begin <= end && end <= targets() + 1, "tokens outside of the stream");
  return {begin, stream_.subspan(static_cast<size_t>(begin - 1), static_cast<size_t>(end - begin + 1))};
}

void ScoreLedger::updated(const ScoredTokens& used, UpdateScope scope) {
  const int32_t before = state_version_;
  if (scope == UpdateScope::stream) ++state_version_;
  note({EventKind::update, scope, used.begin(), used.end(), before, state_version_});
}

// Scoring and learning token by token would make two events for each; a run of such pairs is kept as one.
void ScoreLedger::note(const ScoreEvent& event) {
  const size_t n = events_.size();
  const bool single = event.kind == EventKind::update && event.scope == UpdateScope::stream && event.end == event.begin + 1;
  if (single && n >= 1 && events_[n - 1].kind == EventKind::score && events_[n - 1].begin == event.begin &&
      events_[n - 1].end == event.end) {
    events_.pop_back();
    ScoreEvent pair{EventKind::interleaved, event.scope, event.begin, event.end, event.version_before, event.version_after};
    if (n >= 2 && events_[n - 2].kind == EventKind::interleaved && events_[n - 2].end == event.begin) {
      events_[n - 2].end = event.end;
      events_[n - 2].version_after = event.version_after;
    } else {
      events_.push_back(pair);
    }
    return;
  }
  events_.push_back(event);
}

void ScoreLedger::capture(std::span<const int64_t> targets) {
  for (const int64_t target : targets) captures_[target];
}

std::vector<float>* ScoreLedger::captured(int64_t target) {
  const auto found = captures_.find(target);
  return found == captures_.end() ? nullptr : &found->second;
}

}  // namespace fairway
