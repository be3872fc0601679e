// `fairway analyze`: what the weights are like (scoring spec §7). Sections of analysis.json, which the report draws.
#include "app/analyze.h"

#include <fmt/core.h>

#include <algorithm>
#include <numbers>
#include <optional>

#include "app/analysis_output.h"
#include "app/command.h"
#include "app/named_inputs.h"
#include "app/run_memory.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/nearest_word.h"
#include "base/progress_line.h"
#include "base/sha256.h"
#include "base/signals.h"
#include "base/writer_lock.h"
#include "stages/calibration.h"
#include "stages/held_out.h"
#include "stages/weights.h"

namespace fairway::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

const std::vector<std::string> kAnalyses{"svd", "heads", "calibration", "lens", "sensitivity", "quant"};

bool needs_tokens(const std::string& name) { return name != "svd" && name != "quant"; }

struct AnalyzeFlags {
  std::vector<std::string> words;  // [WHAT] FILE
  std::string what, recipe, data, tokenizer, out, bits = "6,5";
  int64_t tokens = 32 * 2048, context = 0;
};

struct Interrupted {};

std::vector<std::string> split_list(const std::string& list) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    parts.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

// In the order they are done, whatever order they are asked for in.
std::vector<std::string> parse_what(const std::string& list) {
  if (list.empty() || list == "all") return kAnalyses;
  std::vector<std::string> asked = split_list(list), chosen;
  for (const std::string& name : asked)
    if (std::find(kAnalyses.begin(), kAnalyses.end(), name) == kAnalyses.end())
      throw InputError(fmt::format(
          "analyze {}: no such analysis; the nearest is {} (svd, heads, calibration, lens, sensitivity, quant or all)", name,
          nearest_word(name, kAnalyses)));
  std::copy_if(kAnalyses.begin(), kAnalyses.end(), std::back_inserter(chosen),
               [&](const std::string& name) { return std::find(asked.begin(), asked.end(), name) != asked.end(); });
  return chosen;
}

std::vector<int> parse_bits(const std::string& list) {
  std::vector<int> bits;
  for (const std::string& word : split_list(list)) {
    if (word.size() != 1 || word[0] < '2' || word[0] > '8')
      throw InputError("--bits " + list + ": expected widths from 2 to 8, the finer one first, like 6,5");
    bits.push_back(word[0] - '0');
  }
  if (bits.size() > 2 || (bits.size() == 2 && bits[0] <= bits[1]))
    throw InputError("--bits " + list + ": expected one width or two, the finer one first, like 6,5");
  return bits;
}

// Weights and tokens that the analyses share.
class Analyzer {
 public:
  Analyzer(const CommonFlags& common, const AnalyzeFlags& flags, const std::string& file)
      : flags_(flags), quiet_(common.quiet), source_(open_weights(file, flags.recipe, {})), machine_(common) {
    const Tensor all = source_.weights.params->flat_values();
    digest_ = sha256_hex({reinterpret_cast<const char*>(all.data), all.spec.bytes()});
  }

  const WeightSource& source() const { return source_; }
  const std::string& digest() const { return digest_; }

  void open_tokens() {
    const fs::path folder = data_for(source_.file.path.string(), flags_.data);
    const Identities claim = tokenizer_claim(source_);
    std::optional<HeldOut> held_out =
        open_held_out(folder, source_.recipe, &claim, named_tokenizer(source_.file.path.string(), flags_.tokenizer));
    if (!held_out) throw InputError("--data " + folder.string() + ": no validation shards (fineweb_val_*.bin)");
    tell_notes(held_out->notes, quiet_);
    length_ = flags_.context > 0 ? flags_.context : source_.recipe.data.seq_len;
    require_one_window(static_cast<int64_t>(held_out->tokens.size()), length_, folder.string());
    const auto present = static_cast<int64_t>(held_out->tokens.size());
    const int64_t wanted = std::max(flags_.tokens / length_, int64_t{1}) * length_;
    const int64_t targets = std::min(wanted, challenge_targets(present, length_));
    stream_.assign(held_out->tokens.begin(), held_out->tokens.begin() + targets + 1);
    const TargetBytes bytes = held_out->target_bytes();
    int64_t sum = 0;
    for (int64_t target = 1; target <= targets; ++target) sum += bytes.of(stream_, target);
    if (sum < 1) throw InputError(folder.string() + ": the validation tokens have no bytes");
    bits_per_nat_ = static_cast<double>(targets) / static_cast<double>(sum) / std::numbers::ln2;
  }

  // One section; Interrupted when a signal asked to stop.
  AnalysisOutput run(const std::string& name) {
    begun_ = seconds_now();
    AnalysisOutput out = needs_tokens(name) ? run_on_tokens(name) : run_on_weights(name);
    out.json["seconds"] = seconds_now() - begun_;
    return out;
  }

 private:
  AnalysisOutput run_on_weights(const std::string& name) {
    const AnalysisProgress shown = progress(name, "matrices");
    if (name == "svd") return describe(measure_spectra(*source_.weights.params, source_.recipe, machine_.queue.pool(), shown));
    if (source_.packed)
      throw InputError("analyze quant " + source_.file.path.string() +
                       ": an artifact's weights are rounded already; give the run or the weights it was packed from");
    const CalibrationRequest request{
        .source = source_,
        .from = source_.recipe.quant.calibration,
        .data = flags_.data.empty() ? remembered_data(source_.file.path).value_or("") : fs::path(flags_.data)};
    const HessianStore hessians = make_hessians(request, machine_, single_process(), quiet_);
    begun_ = seconds_now();
    return describe(measure_rates(*source_.weights.params, source_.recipe, hessians, *machine_.executor, shown));
  }

  AnalysisOutput run_on_tokens(const std::string& name) {
    AnalysisOutput out = measured_on_tokens(name);
    out.json["tokens"] = stream_.size() - 1;
    out.json["context"] = length_;
    return out;
  }

  AnalysisOutput measured_on_tokens(const std::string& name) {
    AnalysisInput input{.recipe = source_.recipe,
                        .stage = {.looped = source_.weights.looped},
                        .weights = source_.weights.params,
                        .stream = stream_,
                        .row_length = length_,
                        .executor = *machine_.executor,
                        .pool = machine_.queue.pool(),
                        .progress = progress(name, name == "sensitivity" ? "runs" : "tokens")};
    if (name == "heads") return describe(measure_heads(input));
    if (name == "calibration") return describe(measure_calibration(input));
    if (name == "lens") return describe(measure_lens(input), bits_per_nat_);
    return describe(measure_sensitivity(input, *machine_.executor, parse_bits(flags_.bits)), bits_per_nat_);
  }

  AnalysisProgress progress(const std::string& name, const char* unit) {
    return [this, name, unit, line = std::make_shared<ProgressLine>(quiet_)](int64_t done, int64_t total) {
      if (signals_.requested()) throw Interrupted{};
      if (!line->due()) return;
      const double rate = static_cast<double>(done) / (seconds_now() - begun_);
      line->show(fmt::format("{}: {}/{} {}  {} a second  {} left", name, done, total, unit,
                             rate < 1000 ? fmt::format("{:.3g}", rate) : quantity_text(rate),
                             duration_text(static_cast<double>(total - done) / rate)));
    };
  }

  const AnalyzeFlags& flags_;
  bool quiet_;
  WeightSource source_;
  Machine machine_;
  StopSignals signals_;
  std::string digest_;
  std::vector<uint16_t> stream_;
  int64_t length_ = 0;
  double bits_per_nat_ = 0, begun_ = 0;
};

// What an earlier call found about the same weights stays.
ordered_json begun_record(const fs::path& out, const std::string& digest) {
  if (!out.empty() && fs::exists(out)) {
    ordered_json record = parse_json_or_discard<ordered_json>(read_file(out), out.string());
    if (record.is_object() && record.value("weights", "") == digest) return record;
  }
  return {{"weights", digest}};
}

int run_analyze(const CommonFlags& common, AnalyzeFlags flags) {
  if (flags.words.size() > 2) throw InputError("analyze: expected [WHAT] FILE, got " + flags.words[2] + " too");
  if (flags.words.size() == 2 && !flags.what.empty())
    throw InputError("analyze: " + flags.words[0] + " and --what: give only one of them");
  if (flags.words.size() == 2) flags.what = flags.words[0];
  const std::vector<std::string> what = parse_what(flags.what);
  parse_bits(flags.bits);
  require_model(flags.words.back());
  Analyzer analyzer(common, flags, flags.words.back());
  fs::path out = flags.out;
  if (out.empty() && !analyzer.source().folder.empty()) out = analyzer.source().folder / "analysis.json";
  std::optional<WriterLock> lock;
  if (!out.empty()) {
    require_place_for_file(out);
    lock.emplace(WriterLock::of_file(out));
  }
  if (std::ranges::any_of(what, needs_tokens)) analyzer.open_tokens();
  ordered_json record = begun_record(out, analyzer.digest()), result{{"weights", analyzer.digest()}};
  std::string text;
  int status = 0;
  try {
    for (const std::string& name : what) {
      const AnalysisOutput section = analyzer.run(name);
      record[name] = result[name] = section.json;
      if (!out.empty()) write_file_atomic(out, record.dump(1) + "\n");
      text += (text.empty() ? "" : "\n") + section.text;
    }
  } catch (const Interrupted&) {
    status = 130;
  }
  if (!out.empty()) {
    result["path"] = out.string();
    text += fmt::format("\nwritten to {}; fairway report draws it\n", out.string());
  }
  print_result(common, result, text);
  return status;
}

}  // namespace

void add_analyze(CLI::App& program) {
  auto flags = std::make_shared<AnalyzeFlags>();
  CLI::App* command =
      add_command(program, "analyze", "ranks, heads, calibration, lens, sensitivity and bits of trained weights",
                  [flags](const CommonFlags& common) { return run_analyze(common, *flags); });
  command
      ->add_option("FILE", flags->words,
                   "[svd|heads|calibration|lens|sensitivity|quant|all] a run folder, an artifact or weights")
      ->required()
      ->expected(1, 3);
  command->add_option("--what", flags->what, "the same choice as a list: svd,heads (default: all)");
  command->add_option("--data", flags->data,
                      "folder with validation shards and tokenizer.model (default: where the run had them)");
  command->add_option("--tokenizer", flags->tokenizer,
                      "SentencePiece model of the shards (default: tokenizer.model in --data)");
  command->add_option("--recipe", flags->recipe, "recipe of a weight file that has no run folder");
  command->add_option("--tokens", flags->tokens, "how many validation tokens to read, from the start")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  command->add_option("--context", flags->context, "tokens per row (default: as in training)")->check(CLI::Range(2, 1 << 20));
  command->add_option("--bits", flags->bits, "sensitivity: one width or two, the finer one first")->capture_default_str();
  command->add_option("--out", flags->out, "the JSON file (default: RUN/analysis.json)");
}

}  // namespace fairway::app
