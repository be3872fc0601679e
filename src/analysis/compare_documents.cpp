#include "analysis/compare_documents.h"

#include <fmt/core.h>

#include <cmath>
#include <numbers>
#include <numeric>

#include "analysis/score_records.h"
#include "base/error.h"

namespace fairway {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// The documents of the first records read; those of every other run must be the same.
struct TextDocuments {
  std::vector<DocumentSize> sizes;
  fs::path told_by;
};

std::vector<double> bits_of(const fs::path& score_file, double loss, const ScoredOn& on, TextDocuments& text) {
  const fs::path path = score_file.parent_path() / kRecordsName;
  if (!fs::exists(path))
    throw InputError(path.string() + ": is missing; documents are compared from the records that `fairway score --out` keeps");
  const ScoreRecords records = read_score_records(path);
  if (records.documents.empty())
    throw InputError(path.string() + ": tells no documents, as earlier versions wrote it; score again with this version");
  int64_t bytes = 0;
  for (const DocumentSize& document : records.documents) bytes += document.bytes;
  if (measure({records.nats, {}}, records.targets).loss() != loss || bytes != on.bytes)
    throw InputError(fmt::format("{}: is not what {} was summed from; score again", path.string(), score_file.string()));
  if (text.sizes.empty()) text = {records.documents, path};
  if (text.sizes != records.documents)
    throw InputError(fmt::format("{} and {}: their documents differ, {} and {} of them", text.told_by.string(), path.string(),
                                 text.sizes.size(), records.documents.size()));
  std::vector<double> bits;
  for (const double nats : records.document_nats) bits.push_back(nats / std::numbers::ln2);
  return bits;
}

std::vector<std::vector<double>> bits_of_side(const SeedScores& side, TextDocuments& text) {
  std::vector<std::vector<double>> out;
  for (size_t i = 0; i < side.size(); ++i) out.push_back(bits_of(side.files[i], side.nats[i], side.on, text));
  return out;
}

std::string name_of(const SeedScores& side, const char* several) {
  if (side.size() != 1) return several;
  const fs::path& file = side.files.front();
  return (file.filename() == "score.json" && file.has_parent_path() ? file.parent_path() : file).string();
}

ordered_json statement_json(const Statement& s) {
  return {{"interval", {s.interval.low, s.interval.high}},
          {"error", s.difference.error},
          {"df", s.difference.df},
          {"p", s.p},
          {"detectable", s.detectable}};
}

const Statement& told_by(const DocumentComparison& c) { return c.test.recipes ? *c.test.recipes : c.test.models; }

// "A is better than B by 0.00120 ± 0.00041 bits per byte (95 %), p = 2e-07"
std::string sentence_of(const DocumentComparison& c, const Statement& s) {
  const double delta = s.difference.value, half = (s.interval.high - s.interval.low) / 2;
  const bool apart = s.interval.low > 0 || s.interval.high < 0;
  const std::string numbers = fmt::format("{:.5f} ± {:.5f} bits per byte ({:g} %), p = {:.2g}", apart ? std::abs(delta) : delta,
                                          half, 100 * kConfidence, s.p);
  if (!apart) return fmt::format("no difference is shown between {} and {}: {}", c.name, c.against_name, numbers);
  if (delta > 0) return fmt::format("{} is better than {} by {}", c.against_name, c.name, numbers);
  return fmt::format("{} {} better than {} by {}", c.name, c.runs == 1 ? "is" : "are", c.against_name, numbers);
}

std::string recipes_text(const DocumentComparison& c) {
  if (!c.test.recipes)
    return "these recipes   nothing can be said: one run a side does not tell how far seeds differ; train two or more seeds\n";
  std::string text = fmt::format("these recipes   {}; seeds contribute ± {:.5f}, documents ± {:.5f} (standard errors)\n",
                                 sentence_of(c, *c.test.recipes), c.test.seed_error, c.test.models.difference.error);
  if (c.test.borrowed_spread) text += "                the side with one run was taken to spread like the other\n";
  return text;
}

std::string seeds_text(const DocumentComparison& c) {
  if (!c.test.recipes) return "";
  if (!c.test.seeds_needed)
    return fmt::format("seeds           with the spread of these seeds more than {} a side would be needed for p < {}\n",
                       kMostSeeds, kRecordP);
  return fmt::format(
      "seeds           with the spread of these seeds {} a side are needed for p < {}, if the difference is what it seems\n",
      *c.test.seeds_needed, kRecordP);
}

}  // namespace

DocumentComparison compare_documents(const SeedScores& runs, SeedScores against, bool paired_seeds, ThreadPool& pool) {
  for (const SeedScores* side : {&runs, static_cast<const SeedScores*>(&against)}) {
    if (side->published != nullptr)
      throw InputError(
          fmt::format("--paired documents: of {} only totals were published, no documents; name runs", side->published->name));
  }
  if (const auto found = differences(identities_of(runs.on), identities_of(against.on)); !found.empty())
    throw InputError("--paired documents: both sides must be scored alike, but they differ in " + found.front().text());
  if (paired_seeds) {
    if (runs.size() < 2) throw InputError("--paired both: pairs of seeds need at least two runs on each side");
    match_seeds(runs, against);
  }
  TextDocuments text;
  DocumentSample sample{
      .runs = bits_of_side(runs, text), .baseline = bits_of_side(against, text), .paired_seeds = paired_seeds};
  if (text.sizes.size() < 2 || runs.on.bytes < 1)
    throw InputError(fmt::format("{}: {} document of {} bytes; a comparison by documents needs at least two of them",
                                 text.told_by.string(), text.sizes.size(), runs.on.bytes));
  for (const DocumentSize& size : text.sizes) sample.bytes.push_back(static_cast<double>(size.bytes));
  const Resampling resampling;
  return {.test = test_documents(sample, resampling, pool),
          .documents = static_cast<int64_t>(text.sizes.size()),
          .bytes = runs.on.bytes,
          .draws = resampling.draws,
          .runs = runs.size(),
          .against = against.size(),
          .name = name_of(runs, "the runs"),
          .against_name = name_of(against, "the baseline")};
}

ordered_json to_json(const DocumentComparison& c) {
  const Statement& told = told_by(c);
  ordered_json out{{"delta_bpb", told.difference.value},
                   {"interval", {told.interval.low, told.interval.high}},
                   {"confidence", kConfidence},
                   {"about", c.test.recipes ? "recipes" : "models"},
                   {"p", told.p},
                   {"detectable", told.detectable},
                   {"seeds_needed", nullptr},
                   {"paired", "documents"},
                   {"documents", c.documents},
                   {"bytes", c.bytes},
                   {"draws", c.draws},
                   {"models", statement_json(c.test.models)},
                   {"recipes", nullptr}};
  if (c.test.seeds_needed) out["seeds_needed"] = *c.test.seeds_needed;
  if (c.test.recipes) {
    out["recipes"] = statement_json(*c.test.recipes);
    out["recipes"]["seed_error"] = c.test.seed_error;
    out["recipes"]["borrowed_spread"] = c.test.borrowed_spread;
  }
  return out;
}

std::string to_text(const DocumentComparison& c) {
  std::string text = fmt::format("these models    {}\n", sentence_of(c, c.test.models)) + recipes_text(c);
  text += fmt::format(
      "this text       {} documents, {} bytes: it tells two models apart that differ by at least {:.5f} bits per byte",
      c.documents, c.bytes, c.test.models.detectable);
  if (c.test.recipes) text += fmt::format(", and with these seeds two recipes from {:.5f} on", c.test.recipes->detectable);
  text += "\n" + seeds_text(c);
  if (c.documents < kFewDocuments)
    text += fmt::format("note            intervals from {} documents are rough; score a longer text\n", c.documents);
  return text;
}

}  // namespace fairway
