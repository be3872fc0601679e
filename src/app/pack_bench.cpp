// `fairway bench pack`: our coder, Brotli-11 and LZMA-9 on the same quantized weights, each decoded and compared before its
// time counts. Weights are those of a run or file, rounded to SDClip grids (scoring spec §4.3b), or Gaussian ones of pr1105's
// sizes.
#include "app/pack_bench.h"

#include <fmt/core.h>

#include <cmath>
#include <map>

#include "app/weights.h"
#include "artifact/general_codecs.h"
#include "artifact/sections.h"
#include "artifact/tensor_table.h"
#include "base/error.h"
#include "base/half.h"
#include "base/rng.h"
#include "bench/timing.h"
#include "params/param_store.h"
#include "quant/quantize_model.h"
#include "recipe/model_shape.h"
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
QuantizedTensor round_matrix(const float* w, const std::string& bank, int64_t slice, int64_t rows, int64_t cols, int bits,
                             double k) {
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
  for (const ParamInfo& info : parameter_table(source.recipe)) {
    if (info.role == ParamRole::scalar || info.shape.size() < 2) continue;
    const Tensor weight = source.weights.get(info.name);
    if (weight.spec != Spec{shape_of(info), DType::f32}) throw InputError(info.name + ": not of the recipe's shape");
    const bool bank = info.shape.size() == 3;
    const int64_t slices = bank ? info.shape[0] : 1, cols = info.shape.back(), rows = info.count() / cols / slices;
    for (int64_t i = 0; i < slices; ++i)
      out.push_back(round_matrix(weight.as<float>() + i * rows * cols, info.name, bank ? i : -1, rows, cols,
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
    out.push_back(round_matrix(values.data(), "bank.up", i, kRows, kCols, flags.bits, flags.k));
  }
  return out;
}

struct Line {
  int64_t weights = 0;
  double entropy = 0;  // bits
  size_t ours = 0, brotli = 0, lzma = 0;
  double encode = 0, decode = 0, brotli_encode = 0, brotli_decode = 0, lzma_encode = 0, lzma_decode = 0;  // seconds
};

template <class Work>
double seconds(Work&& work, int repeats) {  // the median
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) {
    const double begun = steady_seconds();
    work();
    times.push_back(steady_seconds() - begun);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void require_same(bool same, const char* codec) {
  if (!same) throw WorkError(std::string(codec) + ": decoding does not give the weights back");
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

std::string text_of(const std::string& stream, const Line& l) {
  const double entropy = l.entropy / 8, ours = static_cast<double>(l.ours);
  const auto against = [&](size_t other) { return other == 0 ? 0.0 : 100 * (ours / static_cast<double>(other) - 1); };
  return fmt::format(
      "{:8} {:10} {:11.0f} {:11} {:+7.3f}% {:7.4f} {:11} {:+6.2f}% {:11} {:+6.2f}% {:7.3f} {:7.3f} {:7.2f} {:7.2f}\n", stream,
      l.weights, entropy, l.ours, 100 * (ours / entropy - 1), 8 * ours / static_cast<double>(l.weights), l.brotli,
      against(l.brotli), l.lzma, against(l.lzma), l.encode, l.decode, l.brotli_encode, l.lzma_encode);
}

int bench_pack(const CommonFlags& common, const PackBenchFlags& flags) {
  std::vector<QuantizedTensor> tensors;
  int64_t layers = 1 << 20;
  if (flags.from.empty()) {
    tensors = gaussian_tensors(flags.weights, flags);
  } else {
    const WeightSource source = open_weights(flags.from, flags.recipe, {});
    tensors = real_tensors(source, flags), layers = source.recipe.model.layers;
  }
  std::map<StreamRole, std::vector<QuantizedTensor*>> streams;
  int64_t total = 0;
  for (QuantizedTensor& t : tensors) streams[stream_role(t, layers)].push_back(&t), total += t.count();
  // General compressors need a minute for all of a large model: they get a part of the tensors, and ours the same part.
  const bool whole = flags.share == 1 || total <= 8'000'000;
  std::string text = fmt::format("{:8} {:>10} {:>11} {:>11} {:>8} {:>7} {:>11} {:>7} {:>11} {:>7} {:>7} {:>7} {:>7} {:>7}\n",
                                 "stream", "weights", "entropy B", "ours B", "over", "b/w", "Brotli-11", "ours", "LZMA-9",
                                 "ours", "enc s", "dec s", "Br s", "LZMA s");
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
  print_result(common, result, text);
  return 0;
}

}  // namespace

void add_pack_bench(CLI::App& bench) {
  auto flags = std::make_shared<PackBenchFlags>();
  CLI::App* command = add_command(bench, "pack", "our weight coder beside Brotli-11 and LZMA-9, on one core",
                                  [flags](const CommonFlags& common) { return bench_pack(common, *flags); });
  command->add_option("FILE", flags->from, "a run, an artifact or weights (default: Gaussian ones)");
  command->add_option("--recipe", flags->recipe, "the recipe of a lone weight file");
  command->add_option("--weights", flags->weights, "how many Gaussian weights")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  command->add_option("--bits", flags->bits, "of the layers' matrices")->capture_default_str()->check(CLI::Range(2, 8));
  command->add_option("--k", flags->k, "SDClip: clip at k standard deviations")
      ->capture_default_str()
      ->check(number_between(0.5, 100));
  command->add_option("--share", flags->share, "Brotli and LZMA take one tensor in so many of a large model (1: all)")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--repeats", flags->repeats, "timings of ours; the median counts")
      ->capture_default_str()
      ->check(CLI::Range(1, 100));
}

}  // namespace fairway::app
