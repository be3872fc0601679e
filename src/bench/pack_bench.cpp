#include "bench/pack_bench.h"

#include <cmath>
#include <map>

#include "artifact/general_codecs.h"
#include "artifact/sections.h"
#include "base/error.h"
#include "base/half.h"
#include "base/rng.h"
#include "base/trellis.h"
#include "bench/timing.h"
#include "quant/quantize_model.h"

namespace fairway::bench {
namespace {

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

// Without a search: decoding does not mind.
void follow_trellis(const std::vector<float>& w, double step, QuantizedTensor& t) {
  t.trellis = true, t.bits = 8;
  std::vector<int> states(static_cast<size_t>(t.cols));
  for (int64_t i = 0; i < t.rows; ++i) {
    if (i % kTrellisRows == 0) std::fill(states.begin(), states.end(), 0);
    for (size_t j = 0; j < states.size(); ++j) {
      const size_t at = static_cast<size_t>(i * t.cols) + j;
      const int odd = states[j] & 1, most = kTrellisLevel - odd;
      const auto half = static_cast<int>(std::lrint((w[at] / step - odd) / 2));
      t.q[at] = static_cast<int8_t>(std::clamp(2 * half + odd, -most, most));
      states[j] = next_trellis_state(states[j], t.q[at]);
    }
  }
}

template <class Work>
double median_seconds(Work&& work, int repeats) {
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) times.push_back(measure_once(work));
  return median(std::move(times));
}

void require_same(bool same, const char* codec) {
  if (!same) throw WorkError(std::string(codec) + ": the decoded weights differ");
}

CodedStream bench_stream(std::vector<QuantizedTensor*>& tensors, bool general, int repeats) {
  CodedStream line;
  std::vector<WeightBlock> blocks;
  std::vector<WeightTarget> targets;
  std::vector<std::vector<int8_t>> back;
  std::string plain;
  for (QuantizedTensor* t : tensors) {
    blocks.push_back({t->q.data(), t->rows, t->cols, largest_level(t->bits), t->trellis});
    back.emplace_back(t->q.size());
    targets.push_back({back.back().data(), t->rows, t->cols, largest_level(t->bits), t->trellis});
    plain.append(reinterpret_cast<const char*>(t->q.data()), t->q.size());
    line.weights += t->count(), line.entropy += entropy_of(t->q, t->trellis);
  }
  Section section;
  std::vector<WeightTask> tasks;
  line.encode = median_seconds([&] { section = encode_weight_section(blocks, CodecChoice::rans); }, repeats);
  line.decode = median_seconds(
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
    line.tensors.push_back({tensor_name(tensors[i]->bank, tensors[i]->slice), tensors[i]->count(),
                            entropy_of(tensors[i]->q, tensors[i]->trellis), bits[i]});
  if (!general) return line;
  std::string coded, again;
  line.brotli_encode = measure_once([&] { coded = brotli_encode(plain); });
  line.brotli_decode = measure_once([&] { again = brotli_decode(coded, plain.size(), ""); });
  require_same(again == plain, "brotli");
  line.brotli = coded.size();
  line.lzma_encode = measure_once([&] { coded = lzma_encode(plain); });
  line.lzma_decode = measure_once([&] { again = lzma_decode(coded, plain.size(), ""); });
  require_same(again == plain, "lzma");
  line.lzma = coded.size();
  return line;
}

void add_stream(CodedStream& sum, const CodedStream& line) {
  sum.weights += line.weights, sum.entropy += line.entropy;
  sum.ours += line.ours, sum.brotli += line.brotli, sum.lzma += line.lzma;
  sum.encode += line.encode, sum.decode += line.decode;
  sum.brotli_encode += line.brotli_encode, sum.brotli_decode += line.brotli_decode;
  sum.lzma_encode += line.lzma_encode, sum.lzma_decode += line.lzma_decode;
  sum.tensors.insert(sum.tensors.end(), line.tensors.begin(), line.tensors.end());
}

}  // namespace

std::vector<QuantizedTensor> rounded_matrices(const ParamStore& weights, const PackBenchOptions& options) {
  std::vector<QuantizedTensor> out;
  for (const ParamBank& param : weights.banks()) {
    const ParamInfo& info = param.info;
    if (info.role == ParamRole::scalar || info.shape.size() < 2) continue;
    const bool bank = info.row().block == BlockPart::matrices;
    const int64_t slices = bank ? info.shape[0] : 1, cols = info.shape.back(), rows = info.count() / cols / slices;
    for (int64_t i = 0; i < slices; ++i)
      out.push_back(round_matrix(param.value.as<float>() + i * rows * cols, info.row().id, bank ? i : -1, rows, cols,
                                 bank ? options.bits : 8, bank ? options.k : 20));
  }
  return out;
}

std::vector<QuantizedTensor> gaussian_matrices(int64_t weights, const PackBenchOptions& options) {
  constexpr int64_t kRows = 1024, kCols = 512;
  std::vector<float> values(kRows * kCols);
  std::vector<QuantizedTensor> out;
  Rng rng(1);
  for (int64_t i = 0; i * kRows * kCols < weights; ++i) {
    for (float& v : values) v = static_cast<float>(rng.normal());
    out.push_back(round_matrix(values.data(), ParamId::up, i, kRows, kCols, options.bits, options.k));
    if (options.trellis) follow_trellis(values, options.k / largest_level(options.bits) / 2, out.back());
  }
  return out;
}

PackBench bench_pack(std::vector<QuantizedTensor>& tensors, int64_t layers, const PackBenchOptions& options) {
  std::map<StreamRole, std::vector<QuantizedTensor*>> streams;
  int64_t total = 0;
  for (QuantizedTensor& t : tensors) streams[stream_role(t, layers)].push_back(&t), total += t.count();
  // General compressors need a minute for all of a large model: they get a part of the tensors, and ours the same part.
  const bool whole = options.share == 1 || total <= 8'000'000;
  PackBench result;
  if (!whole) result.sample.emplace();
  for (auto& [role, list] : streams) {
    result.streams.emplace_back(role, bench_stream(list, whole, options.repeats));
    add_stream(result.all, result.streams.back().second);
    if (whole) continue;
    std::vector<QuantizedTensor*> part(list.begin(),
                                       list.begin() + static_cast<int64_t>((list.size() + options.share - 1) / options.share));
    add_stream(*result.sample, bench_stream(part, true, 1));
  }
  return result;
}

}  // namespace fairway::bench
