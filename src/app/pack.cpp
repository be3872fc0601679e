// `fairway pack`: averaged weights to one artifact file at or under a byte budget.
#include <fmt/core.h>

#include "app/named_inputs.h"
#include "app/quantizing_flags.h"
#include "app/run_memory.h"
#include "app/stages.h"
#include "base/file.h"
#include "bundle/code_bytes.h"
#include "stages/pack_stage.h"
#include "stages/ranks.h"

namespace fairway::app {
namespace {

using nlohmann::ordered_json;

uint64_t counted_code() { return static_cast<uint64_t>(code_bytes()); }

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

ordered_json stages_json(const Packed& packed) {
  ordered_json out = ordered_json::object();
  for (const auto& [stage, seconds] : packed.stages) out[stage] = seconds;
  return out;
}

ordered_json result_json(const PackRequest& request, const Packed& packed) {
  const Fitted& fitted = packed.fitted;
  return {{"path", packed.path},
          {"artifact_bytes", fitted.bytes.size()},
          {"budget", packed.budget},
          {"code_bytes", counted_code()},
          {"submission_bytes", fitted.bytes.size() + counted_code()},
          {"tokenizer_bytes", packed.tokenizer_bytes},
          {"natural_bytes", fitted.natural_bytes > 0 ? ordered_json(fitted.natural_bytes) : ordered_json()},
          {"as_published", request.as_published},
          {"method", fitted.method},
          {"bits_per_weight", fitted.ledger.bits_per_weight()},
          {"entropy_bits_per_weight", fitted.ledger.entropy_per_weight()},
          {"pruned", fitted.pruned},
          {"damage_estimate", fitted.damage},
          {"divergence", fitted.divergence > 0 ? ordered_json(fitted.divergence) : ordered_json()},
          {"seconds", {{"calibrate", packed.calibration_seconds}, {"quantize and pack", packed.fit_seconds}}},
          {"stages", stages_json(packed)},
          {"tensors", tensors_json(fitted.report)},
          {"ledger", ledger_json(fitted.ledger)},
          {"calibration", name_of(packed.calibration)}};
}

std::string result_text(const Packed& packed) {
  const Fitted& fitted = packed.fitted;
  const Ledger& ledger = fitted.ledger;
  std::string text = fmt::format("{:<24} {:>12} {:>8}\n", "part", "bytes", "codec");
  for (const LedgerLine& line : ledger.lines)
    text += fmt::format("{:<24} {:>12} {:>8}\n", line.what, line.bytes, name_of(line.codec));
  text += fmt::format("{}: {} bytes of {} ({:.2f} %), {:.3f} bits per weight (entropy {:.3f}), read back and compared\n",
                      packed.path, fitted.bytes.size(), packed.budget,
                      100.0 * static_cast<double>(fitted.bytes.size()) / static_cast<double>(packed.budget),
                      ledger.bits_per_weight(), ledger.entropy_per_weight());
  text += fmt::format("quantizing is expected to cost {:.4f} nats per token", fitted.damage);
  text += fitted.divergence > 0 ? fmt::format("; measured on own text {:.4f}\n", fitted.divergence) : "\n";
  const uint64_t both = fitted.bytes.size() + counted_code();
  text += fmt::format("code: {} bytes compressed; together {}, {} the challenge's {}\n", counted_code(), both,
                      both <= kChallengeBytes ? "within" : "OVER", kChallengeBytes);
  text += fmt::format("{:.1f} s of calibration, {:.1f} s of quantizing and packing:", packed.calibration_seconds,
                      packed.fit_seconds);
  for (const auto& [stage, seconds] : packed.stages) text += fmt::format("\n  {:<24} {:8.2f} s", stage, seconds);
  return text + "\n";
}

int run_pack(CommonFlags common, PackRequest request) {
  Communicator& comm = meet_ranks(common);
  require_model(request.from);
  if (!request.data.empty()) require_data(request.data);
  if (request.data.empty()) request.data = remembered_data(request.from).value_or("").string();
  request.tokenizer = named_tokenizer(request.from, "");
  const pipeline::Outcome outcome = do_pack(request, common, comm);
  if (comm.root()) print_result(common, outcome.result, outcome.text);
  return outcome.status;
}

}  // namespace

pipeline::Outcome do_pack(const PackRequest& request, const Compute& compute, Communicator& comm) {
  const Packed packed = pack_stage(request, counted_code(), compute, comm);
  if (!comm.root()) return {};
  const ordered_json result = result_json(request, packed);
  if (!packed.folder.empty()) write_file_atomic(packed.folder / "pack.json", result.dump(1) + "\n");
  return {0, result, result_text(packed)};
}

void add_pack(CLI::App& program) {
  auto request = std::make_shared<PackRequest>();
  CLI::App* command = add_command(
      program, "pack", "quantize to a byte budget and write the artifact",
      [request](const CommonFlags& common) { return run_pack(common, *request); }, Ranks::shared);
  add_quantizing_flags(*command, request);
  command->add_option("--out", request->out, "the artifact (default: RUN/model.fwy)");
  add_budget(*command, request->budget);
  command->add_option("--codec", request->codec, "best (smallest of each stream), rans, brotli or lzma")->capture_default_str();
  command->add_flag("--as-published", request->as_published,
                    "use the recipe's own setting instead of the best model for the budget");
  command->add_flag("--with-tokenizer", request->with_tokenizer, "the artifact carries its tokenizer, within the budget");
}

}  // namespace fairway::app
