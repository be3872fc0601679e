// `fairway bench pack`: our coder, Brotli-11 and LZMA-9 on the same quantized weights (bench/pack_bench.h). Weights are an
// artifact's own integers, those of a run or file, or Gaussian ones.
#include "bench/pack_bench.h"

#include <fmt/core.h>

#include "app/command.h"
#include "artifact/artifact.h"
#include "stages/weights.h"

namespace fairway::app {
namespace {

using bench::CodedStream, bench::CodedTensor;

struct PackBenchFlags {
  std::string from, recipe;
  int64_t weights = 36'000'000;
  bench::PackBenchOptions options;
};

nlohmann::ordered_json json_of(const std::string& stream, const CodedStream& l) {
  const auto n = static_cast<double>(l.weights);
  return {{"stream", stream},
          {"weights", l.weights},
          {"entropy_bits_per_weight", l.entropy / n},
          {"bits_per_weight", 8.0 * static_cast<double>(l.ours) / n},
          {"bytes", l.ours},
          {"brotli_bytes", l.brotli},
          {"lzma_bytes", l.lzma},
          {"encode_seconds", l.encode},
          {"decode_seconds", l.decode},
          {"brotli_encode_seconds", l.brotli_encode},
          {"brotli_decode_seconds", l.brotli_decode},
          {"lzma_encode_seconds", l.lzma_encode},
          {"lzma_decode_seconds", l.lzma_decode}};
}

nlohmann::ordered_json json_of(const std::vector<CodedTensor>& tensors) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const CodedTensor& t : tensors) {
    const auto n = static_cast<double>(t.weights);
    out.push_back({{"tensor", t.name},
                   {"weights", t.weights},
                   {"entropy_bits_per_weight", t.entropy / n},
                   {"bits_per_weight", t.bits / n},
                   {"over_percent", t.over()}});
  }
  return out;
}

// The bar for a coder: 0.1 % above the entropy, for each tensor.
std::string text_of_worst(const CodedStream& all) {
  if (all.tensors.empty()) return "";
  const auto above = std::count_if(all.tensors.begin(), all.tensors.end(), [](const CodedTensor& t) { return t.over() > 0.1; });
  const CodedTensor& worst = all.worst();
  return fmt::format(
      "{} tensors, {} of them more than 0.1 % above their own order-0 entropy; worst: {} of {} weights, {:.0f} bits where that "
      "is {:.0f}, {:+.3f} %\n",
      all.tensors.size(), above, worst.name, worst.weights, worst.bits, worst.entropy, worst.over());
}

std::string text_of(const std::string& stream, const CodedStream& l) {
  const double entropy = l.entropy / 8, ours = static_cast<double>(l.ours);
  const auto against = [&](size_t other) { return other == 0 ? 0.0 : 100 * (ours / static_cast<double>(other) - 1); };
  return fmt::format(
      "{:8} {:10} {:11.0f} {:11} {:+7.3f}% {:+7.3f}% {:7.4f} {:11} {:+6.2f}% {:11} {:+6.2f}% {:7.3f} {:7.3f} {:7.2f} {:7.2f}\n",
      stream, l.weights, entropy, l.ours, 100 * (ours / entropy - 1), l.tensors.empty() ? 0.0 : l.worst().over(),
      8 * ours / static_cast<double>(l.weights), l.brotli, against(l.brotli), l.lzma, against(l.lzma), l.encode, l.decode,
      l.brotli_encode, l.lzma_encode);
}

std::vector<QuantizedTensor> bench_tensors(const PackBenchFlags& flags, int64_t& layers) {
  if (flags.from.empty()) return bench::gaussian_matrices(flags.weights, flags.options);
  if (std::filesystem::is_regular_file(flags.from) && is_artifact(flags.from)) {
    QuantizedModel model = load_artifact(flags.from);
    layers = model.model.layers;
    std::erase_if(model.tensors, [](const QuantizedTensor& t) { return t.coding != TensorCoding::integer_rows; });
    return std::move(model.tensors);
  }
  const WeightSource source = open_weights(flags.from, flags.recipe, {});
  layers = source.recipe.model.layers;
  return bench::rounded_matrices(*source.weights.params, flags.options);
}

int run_pack_bench(const CommonFlags& common, const PackBenchFlags& flags) {
  int64_t layers = 1 << 20;
  std::vector<QuantizedTensor> tensors = bench_tensors(flags, layers);
  const bench::PackBench b = bench::bench_pack(tensors, layers, flags.options);
  std::string text = fmt::format(
      "{:8} {:>10} {:>11} {:>11} {:>8} {:>8} {:>7} {:>11} {:>7} {:>11} {:>7} {:>7} {:>7} {:>7} {:>7}\n", "stream", "weights",
      "entropy B", "ours B", "over", "worst", "b/w", "Brotli-11", "ours", "LZMA-9", "ours", "enc s", "dec s", "Br s", "LZMA s");
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  for (const auto& [role, line] : b.streams) {
    lines.push_back(json_of(std::string(name_of(role)), line));
    text += text_of(std::string(name_of(role)), line);
  }
  text += text_of("all", b.all);
  nlohmann::ordered_json result = json_of("all", b.all);
  if (b.sample) {
    text += text_of(fmt::format("1/{}", flags.options.share), *b.sample);
    result["sample"] = json_of("sample", *b.sample);
  }
  result["median_ms"] = 1e3 * (b.all.encode + b.all.decode);
  result["streams"] = lines;
  result["tensors"] = json_of(b.all.tensors);
  text += text_of_worst(b.all);
  print_result(common, result, text);
  return 0;
}

}  // namespace

void add_pack_bench(CLI::App& bench) {
  auto flags = std::make_shared<PackBenchFlags>();
  CLI::App* command = add_command(bench, "pack", "our weight coder beside Brotli-11 and LZMA-9, on one core",
                                  [flags](const CommonFlags& common) { return run_pack_bench(common, *flags); });
  command->add_option("FILE", flags->from,
                      "an artifact (its own integers are coded), a run or weights (default: Gaussian weights)");
  command->add_option("--recipe", flags->recipe, "recipe of a weight file that has no run folder");
  command->add_option("--weights", flags->weights, "how many Gaussian weights")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  command->add_flag("--trellis", flags->options.trellis, "Gaussian weights: on a trellis");
  command->add_option("--bits", flags->options.bits, "bits of the layers' matrices")
      ->capture_default_str()
      ->check(CLI::Range(2, 8));
  command->add_option("--k", flags->options.k, "SDClip: clip at k standard deviations")
      ->capture_default_str()
      ->check(number_between(0.5, 100));
  command
      ->add_option("--share", flags->options.share, "give Brotli and LZMA one in this many tensors of a large model (1: all)")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--repeats", flags->options.repeats, "how often to time our coder; the median is reported")
      ->capture_default_str()
      ->check(CLI::Range(1, 100));
}

}  // namespace fairway::app
