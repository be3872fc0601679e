// `fairway bench quantize`: bytes and bits per byte of every way to quantize a run (bench/quantize_bench.h).
#include "bench/quantize_bench.h"

#include <fmt/core.h>

#include "app/scoring_flags.h"
#include "base/output.h"

namespace fairway::app {
namespace {

struct QuantizeBenchFlags {
  std::shared_ptr<ScoreRequest> scoring = std::make_shared<ScoreRequest>();
  bench::QuantizeBenchOptions options;
};

int run_quantize_bench(const CommonFlags& common, const QuantizeBenchFlags& flags) {
  Machine machine(common);
  const std::unique_ptr<Scoring> scoring = open_scoring(*flags.scoring);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  std::string text = "| setting | file, bytes | bits per weight | bits per byte | damage |\n|---|---|---|---|---|\n";
  bench::bench_quantize(*scoring, flags.options, machine, common.quiet, [&](const bench::QuantizeBenchRow& row) {
    rows.push_back({{"name", row.name},
                    {"bytes", row.bytes},
                    {"bits_per_weight", row.bits_per_weight},
                    {"val_bpb", row.bits_per_byte},
                    {"damage", row.damage},
                    {"seconds", row.seconds}});
    const std::string line = fmt::format("| {} | {} | {:.3f} | {:.5f} | {:.5f} |\n", row.name, row.bytes, row.bits_per_weight,
                                         row.bits_per_byte, row.damage);
    text += line;
    if (!common.quiet) print_err(line);
  });
  print_result(common, {{"rows", rows}}, text);
  return 0;
}

}  // namespace

void add_quantize_bench(CLI::App& bench) {
  auto flags = std::make_shared<QuantizeBenchFlags>();
  CLI::App* command = add_command(bench, "quantize", "bytes and bits per byte of every way to quantize a run",
                                  [flags](const CommonFlags& common) { return run_quantize_bench(common, *flags); });
  add_scoring_flags(*command, flags->scoring, true);
  command->get_option("--set")->description("key=value, changes a key of [score]");
  command->add_option("--quant", flags->options.overrides,
                      "key=value, changes a key in every row (train.micro_batch_tokens=2048)");
  command->add_option("--train-data", flags->options.train_data, "folder of training shards (default: RUN/data)");
  command->add_option("--calibration-tokens", flags->options.calibration_tokens, "tokens of generated calibration text")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  command->add_option("--only", flags->options.only, "only rows whose name contains this text");
}

}  // namespace fairway::app
