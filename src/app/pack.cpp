// `fairway pack`: averaged weights to one artifact file at or under a byte budget.
#include <fmt/core.h>

#include "app/quantizing.h"
#include "app/ranks.h"
#include "artifact/code_size/code_bytes.h"
#include "artifact/fit.h"
#include "base/error.h"
#include "base/file.h"
#include "base/progress_line.h"
#include "base/writer_lock.h"
#include "score/eval_model.h"

namespace fairway::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

uint64_t counted_code() { return static_cast<uint64_t>(code_bytes()); }

constexpr uint64_t kChallengeBytes = 16'000'000;  // code and model together (scoring spec §6.1)

struct PackFlags : QuantizingFlags {
  std::string codec = "rans";
  uint64_t budget = 0;  // 0: what the code leaves of the challenge's limit
  bool as_published = false;
};

struct PackSeconds {
  double calibrate = 0, fit = 0;
};

ordered_json tensors_json(const QuantReport& report) {
  ordered_json out = ordered_json::array();
  for (const TensorReport& t : report.tensors) {
    out.push_back({{"name", t.name},
                   {"bits", t.bits},
                   {"scale_rule", t.scale_rule},
                   {"loss", t.loss},
                   {"entropy", t.entropy},
                   {"fallback", t.fallback}});
  }
  return out;
}

ordered_json ledger_json(const Ledger& ledger) {
  ordered_json out = ordered_json::array();
  for (const LedgerLine& line : ledger.lines)
    out.push_back({{"name", line.what}, {"bytes", line.bytes}, {"codec", std::string(name_of(line.codec))}});
  return out;
}

ordered_json result_json(const PackFlags& flags, const Fitted& fitted, uint64_t budget, const PackSeconds& seconds) {
  const Ledger& ledger = fitted.ledger;
  return {{"path", flags.out},
          {"artifact_bytes", fitted.bytes.size()},
          {"budget", budget},
          {"code_bytes", counted_code()},
          {"submission_bytes", fitted.bytes.size() + counted_code()},
          {"natural_bytes", fitted.natural_bytes},
          {"as_published", flags.as_published},
          {"method", fitted.method},
          {"bits_per_weight", ledger.bits_per_weight()},
          {"entropy_bits_per_weight", ledger.entropy_per_weight()},
          {"pruned", fitted.pruned},
          {"damage_estimate", fitted.damage},
          {"seconds", {{"calibrate", seconds.calibrate}, {"quantize and pack", seconds.fit}}},
          {"tensors", tensors_json(fitted.report)},
          {"ledger", ledger_json(ledger)}};
}

std::string result_text(const PackFlags& flags, const Fitted& fitted, uint64_t budget, const PackSeconds& seconds) {
  const Ledger& ledger = fitted.ledger;
  std::string text = fmt::format("{:<24} {:>12} {:>8}\n", "part", "bytes", "codec");
  for (const LedgerLine& line : ledger.lines)
    text += fmt::format("{:<24} {:>12} {:>8}\n", line.what, line.bytes, name_of(line.codec));
  text +=
      fmt::format("{}: {} bytes of {} ({:.2f} %), {:.3f} bits per weight (entropy {:.3f}), read back and equal\n", flags.out,
                  fitted.bytes.size(), budget, 100.0 * static_cast<double>(fitted.bytes.size()) / static_cast<double>(budget),
                  ledger.bits_per_weight(), ledger.entropy_per_weight());
  text += fmt::format("quantizing is expected to cost {:.4f} nats per token\n", fitted.damage);
  const uint64_t both = fitted.bytes.size() + counted_code();
  text += fmt::format("code: {} bytes compressed; together {}, {} the challenge's {}\n", counted_code(), both,
                      both <= kChallengeBytes ? "within" : "OVER", kChallengeBytes);
  return text + fmt::format("{:.1f} s of calibration, {:.1f} s of quantizing and packing\n", seconds.calibrate, seconds.fit);
}

int run_pack(CommonFlags common, PackFlags flags) {
  Communicator& comm = meet_ranks(common);
  const WeightSource source = open_quantizing(flags);
  if (flags.out.empty()) {
    if (source.folder.empty()) throw InputError("--out: a lone weight file needs the name of the artifact");
    flags.out = (source.folder / "model.fwy").string();
  }
  require_place_for_file(flags.out);
  std::optional<WriterLock> artifact_lock, run_lock;  // the run's folder gets pack.json
  if (comm.root()) artifact_lock.emplace(WriterLock::of_file(flags.out));
  if (comm.root() && !source.folder.empty()) run_lock.emplace(WriterLock::of_folder(source.folder));
  const uint64_t budget = flags.budget > 0 ? flags.budget : kChallengeBytes - std::min(counted_code(), kChallengeBytes - 1);
  const CodecChoice codec = codec_choice(flags.codec);
  Machine machine(common);
  ProgressLine line(common.quiet);
  const QuantizingInput input = prepare_quantizing(source, flags, machine, comm, common.quiet);
  const double begun = steady_seconds();
  double moment_seconds = 0;  // part of calibration: of training data they count as training
  const Fitted fitted = fit_model({.weights = input.weights,
                                   .recipe = source.recipe,
                                   .hessians = input.found(),
                                   .site = *machine.executor,
                                   .looped = stored_looped(source.weights, source.recipe),
                                   .tokenizer = input.tokenizer,
                                   .budget = budget,
                                   .codec = codec,
                                   .as_published = flags.as_published,
                                   .say = [&](const std::string& what) { line.say(what); },
                                   .moments =
                                       [&] {
                                         const double asked = steady_seconds();
                                         TensorMoments moments = make_moments(
                                             {source, input.weights, source.recipe.quant.calibration, flags.data, flags.tokens},
                                             machine, comm, common.quiet);
                                         moment_seconds += steady_seconds() - asked;
                                         return moments;
                                       },
                                   .comm = comm});
  for (const std::string& fallback : fitted.report.fallbacks()) line.say(fallback);
  const PackSeconds seconds{input.calibration_seconds + moment_seconds, steady_seconds() - begun - moment_seconds};
  if (!comm.root()) return 0;  // it has the same bytes
  save_artifact(flags.out, fitted.bytes);
  ordered_json result = result_json(flags, fitted, budget, seconds);
  result["calibration"] = name_of(source.recipe.quant.calibration);
  if (!source.folder.empty()) write_file_atomic(source.folder / "pack.json", result.dump(1) + "\n");
  print_result(common, result, result_text(flags, fitted, budget, seconds));
  return 0;
}

}  // namespace

void add_pack(CLI::App& program) {
  auto flags = std::make_shared<PackFlags>();
  CLI::App* command = add_command(program, "pack", "quantize to a byte budget and write the artifact",
                                  [flags](const CommonFlags& common) { return run_pack(common, *flags); });
  add_quantizing_flags(*command, *flags);
  command->add_option("--out", flags->out, "the artifact (default: RUN/model.fwy)");
  add_budget(*command, flags->budget);
  command->add_option("--codec", flags->codec, "best (smallest of each stream), rans, brotli or lzma")->capture_default_str();
  command->add_flag("--as-published", flags->as_published, "the recipe's own setting, not the best model for the budget");
}

}  // namespace fairway::app
