// `fairway bench pack`: our coder, Brotli-11 and LZMA-9 on the same quantized weights, each decoded and compared before its
// time counts. Weights are an artifact's own integers, those of a run or file, rounded to SDClip grids (scoring spec §4.3b), or
// Gaussian ones of pr1105's sizes.
#include "app/pack_bench.h"

#include <fmt/core.h>

#include <cmath>
#include <map>

#include "artifact/artifact.h"
#include "artifact/general_codecs.h"
#include "artifact/sections.h"
#include "artifact/tensor_table.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/half.h"
#include "base/rng.h"
#include "bench/timing.h"
#include "quant/quantize_model.h"
#include "stages/weights.h"
#include "train/loop.h"

namespace fairway::app {
namespace {

struct PackBenchFlags {
  std::string from, recipe;
  double k = 12.85;
  int bits = 6, repeats = 3;
  int64_t share = 8;  // Brotli and LZMA take one in so many rows of weights this large
  int64_t weights = 36'000'000;
};

// s = k·std/R rounded to half, q = nearest (scoring spec §4.3b).
QuantizedTensor round_matrix(const float* w, ParamId bank, int64_t slice, int64_t rows, int64_t cols, int bits, double k) {
  QuantizedTensor t{
      .bank = bank, .slice = slice, .rows = rows, .cols = cols, .coding = TensorCoding::integer_rows, .bits = bits};
  t.q.resize(static_cast<size_t>(t.count()));
  const int level = largest_level(bits);
  for (int64_t i = 0; i < rows; ++i, w += cols) {
    double sum = 0, squares = 0;
    for (int64_t j = 0; j < cols; ++j) sum += w[j], squares += static_cast<double>(w[j]) * w[j];
    const auto n = static_cast<double>(cols);
    const double deviation = std::sqrt(std::max(0.0, (squares - sum * sum / n) / std::max(1.0, n - 1)));
    const float step = from_half(to_half(static_cast<float>(std::max(k * deviation / level, 6.2e-5))));
    for (int64_t j = 0; j < cols; ++j)
      t.q[static_cast<size_t>(i * cols + j)] =
          static_cast<int8_t>(std::clamp(static_cast<int>(std::lrint(w[j] / step)), -level, level));
  }
  return t;
}

std::vector<QuantizedTensor> real_tensors(const WeightSource& source, const PackBenchFlags& flags) {
  std::vector<QuantizedTensor> out;
  for (const ParamBank& param : source.weights.params->banks()) {
    const ParamInfo& info = param.info;
    if (info.role == ParamRole::scalar || info.shape.size() < 2) continue;
    const bool bank = info.row().block == BlockPart::matrices;
    const int64_t slices = bank ? info.shape[0] : 1, cols = info.shape.back(), rows = info.count() / cols / slices;
    for (int64_t i = 0; i < slices; ++i)
      out.push_back(round_matrix(param.value.as<float>() + i * rows * cols, info.row().id, bank ? i : -1, rows, cols,
                                 bank ? flags.bits : 8, bank ? flags.k : 20));
  }
  return out;
}

std::vector<QuantizedTensor> gaussian_tensors(int64_t weights, const PackBenchFlags& flags) {
  constexpr int64_t kRows = 1024, kCols = 512;
  std::vector<float> values(kRows * kCols);
  std::vector<QuantizedTensor> out;
  Rng rng(1);
  for (int64_t i = 0; i * kRows * kCols < weights; ++i) {
    for (float& v : values) v = static_cast<float>(rng.normal());
    out.push_back(round_matrix(values.data(), ParamId::up, i, kRows, kCols, flags.bits, flags.k));
  }
  return out;
}

// A tensor's share of its stream beside the entropy of its own levels.
struct Share {
  std::string name;
  int64_t weights = 0;
  double entropy = 0, bits = 0;
  double over() const { return entropy > 0 ? 100 * (bits / entropy - 1) : 0; }  // percent
};

struct Line {
  int64_t weights = 0;
  double entropy = 0;  // bits
  size_t ours = 0, brotli = 0, lzma = 0;
  double encode = 0, decode = 0, brotli_encode = 0, brotli_decode = 0, lzma_encode = 0, lzma_decode = 0;  // seconds
  std::vector<Share> tensors;
  const Share& worst() const {
    return *std::max_element(tensors.begin(), tensors.end(),
                             [](const Share& a, const Share& b) { return a.over() < b.over(); });
  }
};

template <class Work>
double seconds(Work&& work, int repeats) {  // the median
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) {
    const double begun = seconds_now();
    work();
    times.push_back(seconds_now() - begun);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void require_same(bool same, const char* codec) {
  if (!same) throw WorkError(std::string(codec) + ": the decoded weights differ");
}

Line bench_stream(std::vector<QuantizedTensor*>& tensors, bool general, int repeats) {
  Line line;
  std::vector<WeightBlock> blocks;
  std::vector<WeightTarget> targets;
  std::vector<std::vector<int8_t>> back;
  std::string plain;
  for (QuantizedTensor* t : tensors) {
    blocks.push_back({t->q.data(), t->rows, t->cols, largest_level(t->bits)});
    back.emplace_back(t->q.size());
    targets.push_back({back.back().data(), t->rows, t->cols, largest_level(t->bits)});
    plain.append(reinterpret_cast<const char*>(t->q.data()), t->q.size());
    line.weights += t->count(), line.entropy += entropy_of(t->q);
  }
  Section section;
  std::vector<WeightTask> tasks;
  line.encode = seconds([&] { section = encode_weight_section(blocks, CodecChoice::rans); }, repeats);
  line.decode = seconds(
      [&] {
        tasks.clear();
        add_weight_tasks({section.codec, section.bytes}, targets, "", tasks);
        for (const WeightTask& task : tasks) run_task(task, task.blocks);
      },
      repeats);
  for (size_t i = 0; i < tensors.size(); ++i) require_same(back[i] == tensors[i]->q, "rans");
  line.ours = section.bytes.size();
  std::vector<double> bits;
  encode_weight_section(blocks, CodecChoice::rans, &bits);
  for (size_t i = 0; i < bits.size(); ++i)
    line.tensors.push_back(
        {tensor_name(tensors[i]->bank, tensors[i]->slice), tensors[i]->count(), entropy_of(tensors[i]->q), bits[i]});
  if (!general) return line;
  std::string coded, again;
  line.brotli_encode = seconds([&] { coded = brotli_encode(plain); }, 1);
  line.brotli_decode = seconds([&] { again = brotli_decode(coded, plain.size(), ""); }, 1);
  require_same(again == plain, "brotli");
  line.brotli = coded.size();
  line.lzma_encode = seconds([&] { coded = lzma_encode(plain); }, 1);
  line.lzma_decode = seconds([&] { again = lzma_decode(coded, plain.size(), ""); }, 1);
  require_same(again == plain, "lzma");
  line.lzma = coded.size();
  return line;
}

void add(Line& sum, const Line& line) {
  sum.weights += line.weights, sum.entropy += line.entropy;
  sum.ours += line.ours, sum.brotli += line.brotli, sum.lzma += line.lzma;
  sum.encode += line.encode, sum.decode += line.decode;
  sum.brotli_encode += line.brotli_encode, sum.brotli_decode += line.brotli_decode;
  sum.lzma_encode += line.lzma_encode, sum.lzma_decode += line.lzma_decode;
  sum.tensors.insert(sum.tensors.end(), line.tensors.begin(), line.tensors.end());
}

nlohmann::ordered_json json_of(const std::string& stream, const Line& l) {
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

nlohmann::ordered_json json_of(const std::vector<Share>& tensors) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const Share& t : tensors) {
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
std::string text_of_worst(const Line& all) {
  if (all.tensors.empty()) return "";
  const auto above = std::count_if(all.tensors.begin(), all.tensors.end(), [](const Share& t) { return t.over() > 0.1; });
  const Share& worst = all.worst();
  return fmt::format(
      "{} tensors, {} of them more than 0.1 % above their own order-0 entropy; worst: {} of {} weights, {:.0f} bits where that "
      "is {:.0f}, {:+.3f} %\n",
      all.tensors.size(), above, worst.name, worst.weights, worst.bits, worst.entropy, worst.over());
}

std::string text_of(const std::string& stream, const Line& l) {
  const double entropy = l.entropy / 8, ours = static_cast<double>(l.ours);
  const auto against = [&](size_t other) { return other == 0 ? 0.0 : 100 * (ours / static_cast<double>(other) - 1); };
  return fmt::format(
      "{:8} {:10} {:11.0f} {:11} {:+7.3f}% {:+7.3f}% {:7.4f} {:11} {:+6.2f}% {:11} {:+6.2f}% {:7.3f} {:7.3f} {:7.2f} {:7.2f}\n",
      stream, l.weights, entropy, l.ours, 100 * (ours / entropy - 1), l.tensors.empty() ? 0.0 : l.worst().over(),
      8 * ours / static_cast<double>(l.weights), l.brotli, against(l.brotli), l.lzma, against(l.lzma), l.encode, l.decode,
      l.brotli_encode, l.lzma_encode);
}

std::vector<QuantizedTensor> bench_tensors(const PackBenchFlags& flags, int64_t& layers) {
  if (flags.from.empty()) return gaussian_tensors(flags.weights, flags);
  if (std::filesystem::is_regular_file(flags.from) && is_artifact(flags.from)) {
    QuantizedModel model = load_artifact(flags.from);
    layers = model.model.layers;
    std::erase_if(model.tensors, [](const QuantizedTensor& t) { return t.coding != TensorCoding::integer_rows; });
    return std::move(model.tensors);
  }
  const WeightSource source = open_weights(flags.from, flags.recipe, {});
  layers = source.recipe.model.layers;
  return real_tensors(source, flags);
}

int bench_pack(const CommonFlags& common, const PackBenchFlags& flags) {
  int64_t layers = 1 << 20;
  std::vector<QuantizedTensor> tensors = bench_tensors(flags, layers);
  std::map<StreamRole, std::vector<QuantizedTensor*>> streams;
  int64_t total = 0;
  for (QuantizedTensor& t : tensors) streams[stream_role(t, layers)].push_back(&t), total += t.count();
  // General compressors need a minute for all of a large model: they get a part of the tensors, and ours the same part.
  const bool whole = flags.share == 1 || total <= 8'000'000;
  std::string text = fmt::format(
      "{:8} {:>10} {:>11} {:>11} {:>8} {:>8} {:>7} {:>11} {:>7} {:>11} {:>7} {:>7} {:>7} {:>7} {:>7}\n", "stream", "weights",
      "entropy B", "ours B", "over", "worst", "b/w", "Brotli-11", "ours", "LZMA-9", "ours", "enc s", "dec s", "Br s", "LZMA s");
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  Line all, sampled;
  for (auto& [role, list] : streams) {
    const Line line = bench_stream(list, whole, flags.repeats);
    add(all, line);
    lines.push_back(json_of(std::string(name_of(role)), line));
    text += text_of(std::string(name_of(role)), line);
    if (whole) continue;
    std::vector<QuantizedTensor*> part(list.begin(),
                                       list.begin() + static_cast<int64_t>((list.size() + flags.share - 1) / flags.share));
    add(sampled, bench_stream(part, true, 1));
  }
  text += text_of("all", all);
  nlohmann::ordered_json result = json_of("all", all);
  if (!whole) {
    text += text_of(fmt::format("1/{}", flags.share), sampled);
    result["sample"] = json_of("sample", sampled);
  }
  result["median_ms"] = 1e3 * (all.encode + all.decode);
  result["streams"] = lines;
  result["tensors"] = json_of(all.tensors);
  text += text_of_worst(all);
  print_result(common, result, text);
  return 0;
}

}  // namespace

void add_pack_bench(CLI::App& bench) {
  auto flags = std::make_shared<PackBenchFlags>();
  CLI::App* command = add_command(bench, "pack", "our weight coder beside Brotli-11 and LZMA-9, on one core",
                                  [flags](const CommonFlags& common) { return bench_pack(common, *flags); });
  command->add_option("FILE", flags->from,
                      "an artifact (its own integers are coded), a run or weights (default: Gaussian weights)");
  command->add_option("--recipe", flags->recipe, "recipe of a weight file that has no run folder");
  command->add_option("--weights", flags->weights, "how many Gaussian weights")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  command->add_option("--bits", flags->bits, "bits of the layers' matrices")->capture_default_str()->check(CLI::Range(2, 8));
  command->add_option("--k", flags->k, "SDClip: clip at k standard deviations")
      ->capture_default_str()
      ->check(number_between(0.5, 100));
  command->add_option("--share", flags->share, "give Brotli and LZMA one in this many tensors of a large model (1: all)")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--repeats", flags->repeats, "how often to time our coder; the median is reported")
      ->capture_default_str()
      ->check(CLI::Range(1, 100));
}

}  // namespace fairway::app
