#include "analysis/compare_runs.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>

#include "analysis/published.h"
#include "analysis/receipt_identity.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace fairway {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

double finite_number(const json& record, const char* key, const fs::path& path) {
  if (!record.is_object() || !record.contains(key) || !record[key].is_number())
    throw InputError(path.string() + ": has no number \"" + key + "\"; expected the output of `fairway score --json`");
  const auto value = record[key].get<double>();
  if (!std::isfinite(value)) throw InputError(path.string() + ": \"" + key + "\" is not finite");
  return value;
}

// train.seed of the run's recipe, which the canonical dump has on a line of its own.
std::optional<int64_t> seed_of(const fs::path& folder) {
  const fs::path path = folder / "recipe.toml";
  if (!fs::exists(path)) return std::nullopt;
  const std::string text = read_file(path);
  const size_t table = text.find("[train]"), at = text.find("\nseed = ", table == std::string::npos ? text.size() : table);
  if (at == std::string::npos) return std::nullopt;
  return std::strtoll(text.c_str() + at + 8, nullptr, 10);
}

std::vector<std::string> expanded(const std::string& name) {
  const fs::path ledger = fs::path(name) / "seeds.json";
  if (!fs::is_directory(name) || !fs::exists(ledger)) return {name};
  const json content = parse_json_or_discard(read_file(ledger), ledger.string());
  if (!content.is_object() || !content.contains("seeds") || !content["seeds"].is_array())
    throw InputError(ledger.string() + ": not a ledger of `fairway run --seeds`");
  std::vector<std::string> out;
  for (const json& seed : content["seeds"]) {
    if (!seed.is_number_unsigned()) throw InputError(ledger.string() + ": " + seed.dump() + " under \"seeds\" is not a seed");
    out.push_back((fs::path(name) / ("seed" + seed.dump())).string());
  }
  return out;
}

// Nats per token of one bit per byte; the same for every run with one tokenizer and one text.
double nats_per_bit(const SeedScores& scores) {
  if (scores.nats.empty() || scores.bpb.empty()) return std::numeric_limits<double>::quiet_NaN();
  return mean(scores.nats) / mean(scores.bpb);
}

std::vector<double> scaled(std::vector<double> values, double by) {
  for (double& value : values) value *= by;
  return values;
}

ordered_json finite(double value) { return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr); }

std::string spread(const std::vector<double>& values, const char* unit) {
  if (values.empty()) return "";
  if (values.size() == 1) return fmt::format("  {:.5f} {}", values[0], unit);
  return fmt::format("  {:.5f} ± {:.5f} {}", mean(values), std::sqrt(sample_variance(values)), unit);
}

template <class T>
T field_of(const json& score, const char* key, const fs::path& path) {
  try {
    return score.at(key).get<T>();
  } catch (const json::exception&) {
    throw InputError(
        fmt::format("{}: has no \"{}\", so the scores cannot be compared; score again with this version", path.string(), key));
  }
}

bool differ_in(const std::vector<IdentityDifference>& found, IdentityKind kind) {
  return std::any_of(found.begin(), found.end(), [&](const IdentityDifference& one) { return one.kind == kind; });
}

std::string not_official(const ScoredOn& on, const PublishedScores& published) {
  const std::string name(published.name);
  if (!on.packed) return fmt::format("{} is a score of artifacts; the runs were scored from weights as trained", name);
  if (on.whole && std::abs(on.bytes - kOfficialBytes) <= kOfficialTail) return "";
  return fmt::format("{} was scored on the whole official validation text, about {} bytes; the runs on {} {} bytes{}", name,
                     kOfficialBytes, on.whole ? "a text of" : "the first", on.bytes, on.whole ? "" : " of theirs");
}

bool one_tokenizer(const SeedScores& a, const SeedScores& b) {
  if (a.published != nullptr && b.published != nullptr) return a.published->tokens == b.published->tokens;
  if (a.published == nullptr && b.published == nullptr)
    return !differ_in(differences(identities_of(a.on), identities_of(b.on)), IdentityKind::tokenizer);
  const OfficialTokens& known = *(a.published != nullptr ? a : b).published->tokens;
  const int64_t tokens = (a.published != nullptr ? b : a).on.tokens;
  return tokens == known.targets || tokens == known.other_targets;
}

}  // namespace

Identities identities_of(const ScoredOn& on, const fs::path& by) {
  Identities out{.by = by.string()};
  out.tell(IdentityKind::text, {on.text})
      .tell(IdentityKind::tokenizer, {on.tokenizer})
      .tell(IdentityKind::form, {form_identity(on.packed)})
      .tell(IdentityKind::targets, {fmt::format("{}", on.tokens)})
      .tell(IdentityKind::bytes, {fmt::format("{}", on.bytes)})
      .tell(IdentityKind::whole, {fmt::format("{}", on.whole)})
      .tell(IdentityKind::mode, {on.mode})
      .tell(IdentityKind::context, {fmt::format("{}", on.context)})
      .tell(IdentityKind::stride, {fmt::format("{}", on.stride)})
      .tell(IdentityKind::documents, {fmt::format("{}", on.documents)})
      .tell(IdentityKind::legal, {fmt::format("{}", on.legal)});
  return out;
}

void match_seeds(const SeedScores& runs, SeedScores& against) {
  if (runs.size() != against.size())
    throw InputError(fmt::format("--paired: {} runs against {}; expected the same number on both sides, with the same seeds",
                                 runs.size(), against.size()));
  if (runs.seeds.empty() || against.seeds.empty()) return;
  SeedScores ordered{.on = against.on, .published = against.published};
  for (const int64_t seed : runs.seeds) {
    const auto found = std::find(against.seeds.begin(), against.seeds.end(), seed);
    if (found == against.seeds.end())
      throw InputError(fmt::format("--paired: seed {} is on one side only; a paired test needs the same seeds", seed));
    const auto at = static_cast<size_t>(found - against.seeds.begin());
    ordered.seeds.push_back(seed);
    if (!against.nats.empty()) ordered.nats.push_back(against.nats[at]);
    if (!against.bpb.empty()) ordered.bpb.push_back(against.bpb[at]);
    if (!against.files.empty()) ordered.files.push_back(against.files[at]);
  }
  against = std::move(ordered);
}

ScoredOn scored_on(const json& score, const fs::path& path) {
  ScoredOn on{.text = field_of<std::string>(score, "text", path),
              .tokenizer = field_of<std::string>(score, "tokenizer", path),
              .tokens = field_of<int64_t>(score, "tokens", path),
              .bytes = field_of<int64_t>(score, "bytes", path),
              .whole = field_of<bool>(score, "whole", path),
              .packed = field_of<bool>(score, "packed", path),
              .legal = field_of<bool>(score, "legal", path),
              .mode = field_of<std::string>(score, "mode", path),
              .context = field_of<int64_t>(score, "context", path)};
  if (score.contains("stride")) on.stride = field_of<int64_t>(score, "stride", path);
  if (score.contains("documents")) on.documents = field_of<bool>(score, "documents", path);
  return on;
}

std::string incomparable(const SeedScores& runs, const SeedScores& against) {
  if (runs.published != nullptr && against.published != nullptr) return "";
  if (against.published != nullptr) return not_official(runs.on, *against.published);
  if (runs.published != nullptr) return not_official(against.on, *runs.published);
  const std::vector<IdentityDifference> found = differences(identities_of(runs.on), identities_of(against.on));
  const bool other_tokens = differ_in(found, IdentityKind::tokenizer), whole = runs.on.whole && against.on.whole;
  for (const IdentityDifference& difference : found) {
    const IdentityKind kind = difference.kind;
    const bool part = kind == IdentityKind::targets || kind == IdentityKind::bytes;
    if (kind == IdentityKind::text || kind == IdentityKind::form || (part && !other_tokens))
      return "the scores are of different things: " + difference.text();
    if (kind == IdentityKind::tokenizer && !whole)
      return fmt::format("the scores are of different things: {}, and not all of the text was scored ({} and {} bytes)",
                         difference.text(), runs.on.bytes, against.on.bytes);
  }
  return "";
}

SeedScores read_scores(const std::vector<std::string>& names) {
  SeedScores scores;
  std::vector<std::string> all;
  for (const std::string& name : names) {
    if (const PublishedScores* known = fs::exists(name) ? nullptr : find_published(name)) {
      if (names.size() > 1) throw InputError(name + ": a published system cannot be mixed with runs; name it alone");
      scores.nats.assign(known->nats.begin(), known->nats.end());
      scores.bpb.assign(known->bpb.begin(), known->bpb.end());
      scores.seeds.assign(known->seeds.begin(), known->seeds.end());
      scores.published = known;
      return scores;
    }
    for (std::string& run : expanded(name)) all.push_back(std::move(run));
  }
  fs::path first;
  for (const std::string& name : all) {
    const fs::path path = fs::is_directory(name) ? fs::path(name) / "score.json" : fs::path(name);
    const json record = parse_json_or_discard(read_file(path), path.string());
    scores.files.push_back(path);
    scores.nats.push_back(finite_number(record, "val_loss", path));
    scores.bpb.push_back(finite_number(record, "val_bpb", path));
    const ScoredOn on = scored_on(record, path);
    if (first.empty()) first = path, scores.on = on;
    if (const auto found = differences(identities_of(scores.on), identities_of(on)); !found.empty())
      throw InputError(fmt::format("{} and {}: all scores of one side must be comparable, but they differ in {}",
                                   first.string(), path.string(), found.front().text()));
    if (const auto seed = fs::is_directory(name) ? seed_of(name) : std::nullopt) scores.seeds.push_back(*seed);
  }
  if (scores.seeds.size() != scores.size()) scores.seeds.clear();
  return scores;
}

Comparison compare_scores(const SeedScores& runs, SeedScores against, bool paired) {
  if (runs.size() < 2 || against.size() < 2)
    throw InputError(
        fmt::format("compare: {} and {} runs were given; a test needs at least two on each side; --paired "
                    "documents compares single runs",
                    runs.size(), against.size()));
  if (const std::string why = incomparable(runs, against); !why.empty()) throw InputError("compare: " + why);
  if (paired) match_seeds(runs, against);
  const double ratio = nats_per_bit(runs), other = nats_per_bit(against);
  Comparison out{.through_bytes = runs.nats.empty() || against.nats.empty() || !one_tokenizer(runs, against), .paired = paired};
  if (runs.published == nullptr && !runs.on.legal) out.barred = "mode " + runs.on.mode + " breaks the rules of scoring";
  if (out.through_bytes && (runs.bpb.empty() || against.bpb.empty()))
    throw InputError("compare: one side has nats per token only, the other bits per byte only");
  const double known = std::isfinite(ratio) ? ratio : other;  // nats of the runs' tokens; a published side may have none
  const std::vector<double>& x = out.through_bytes ? runs.bpb : runs.nats;
  const std::vector<double>& y = out.through_bytes ? against.bpb : against.nats;
  const auto difference = paired ? paired_difference : welch_difference;
  const Difference measured = difference(x, y);
  out.test = t_test(measured);
  const double delta = mean(x) - mean(y);
  const bool both = !runs.bpb.empty() && !against.bpb.empty();
  out.delta_bpb = both ? mean(runs.bpb) - mean(against.bpb) : delta / known;
  out.delta_nats = out.through_bytes ? delta * known : delta;
  const double to_bpb = out.through_bytes ? 1 : 1 / known;
  const Interval tested = interval_of(measured);
  out.interval = {tested.low * to_bpb, tested.high * to_bpb};
  out.margin_bpb = std::isfinite(known) ? kRecordNats / known : 0;
  if (!out.through_bytes || std::isfinite(known)) {
    const double scale = out.through_bytes ? known : 1;
    const Difference nats = difference(scaled(x, scale), scaled(y, scale));
    out.margin = margin_test(nats, kRecordNats);
    out.record = out.barred.empty() && is_record(nats);
  }
  return out;
}

ordered_json to_json(const Comparison& c) {
  ordered_json out{{"delta_bpb", finite(c.delta_bpb)},
                   {"delta_nats", finite(c.delta_nats)},
                   {"interval", {finite(c.interval.low), finite(c.interval.high)}},
                   {"confidence", kConfidence},
                   {"t", finite(c.test.t)},
                   {"df", c.test.df},
                   {"p", c.test.p},
                   {"record", c.record},
                   {"paired", c.paired},
                   {"tested", c.through_bytes ? "bits per byte" : "nats per token"},
                   {"margin", {{"nats", kRecordNats}, {"bpb", c.margin_bpb}, {"t", finite(c.margin.t)}, {"p", c.margin.p}}}};
  if (!c.barred.empty()) out["barred"] = c.barred;
  return out;
}

std::string to_text(const Comparison& c) {
  std::string text = "difference";
  if (std::isfinite(c.delta_nats)) text += fmt::format(" {:+.5f} nats per token,", c.delta_nats);
  if (std::isfinite(c.delta_bpb)) text += fmt::format(" {:+.5f} bits per byte", c.delta_bpb);
  if (std::isfinite(c.interval.low))
    text += fmt::format(" ({:g} %: {:+.5f} to {:+.5f})", 100 * kConfidence, c.interval.low, c.interval.high);
  text += fmt::format("\n{} on {}: t = {:.3f}, df = {:.3f}, p = {:.3g}\n", c.paired ? "paired test" : "Welch's test",
                      c.through_bytes ? "bits per byte" : "nats per token", c.test.t, c.test.df, c.test.p);
  if (c.through_bytes && c.margin_bpb <= 0) return text + "record: not known without nats per token on both sides\n";
  text += fmt::format("better by more than {} nats", kRecordNats);
  if (c.margin_bpb > 0) text += fmt::format(" ({:.5f} bits per byte)", c.margin_bpb);
  text += fmt::format(": t = {:.3f}, one-sided p = {:.3g}\n", c.margin.t, c.margin.p);
  if (!c.barred.empty()) return text + "record: no, " + c.barred + "\n";
  return text +
         (c.record ? "record: yes\n" : fmt::format("record: no (needs {} nats per token at p < {})\n", kRecordNats, kRecordP));
}

std::string describe(const std::string& what, const SeedScores& scores) {
  const std::string mode = scores.published != nullptr ? std::string(scores.published->what) : scores.on.mode;
  return fmt::format("{:<9} n={}{}{}  ({})\n", what, scores.size(), spread(scores.nats, "nats per token"),
                     spread(scores.bpb, "bits per byte"), mode);
}

}  // namespace fairway
