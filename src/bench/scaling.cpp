#include "bench/scaling.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "optim/gradient_layout.h"

namespace fairway::bench {
namespace {

// NVLink 4 carries 450 GB/s each way; collectives of tens of megabytes reach about 350 with 20 us to begin. Copy rates: 4.24
// TB/s was measured on the H200, the H100's is the same share of its 3.35 TB/s.
const Gpu kGpus[] = {{"h100", 2.96, 350, 20, 650, 5, 132}, {"h200", 4.24, 350, 20, 650, 5, 132}};

// PyTorch's forward and backward of pr1105, 98,304 tokens on one H200, in ms: 80.25 ms a step of which 33.7 % attention, 11.2 %
// fused MLP, 25 % other products, and the rest less the optimizer's 7.2 ms elementwise.
struct PassTable {
  double attention = 27.0, products = 29.1, elementwise = 17.0, tokens = 98304, copy_tb_per_s = 4.24;
};
constexpr int kPublishedReductions = 55;         // replicated tensors, each reduced by itself
constexpr double kFrameworkCallUs = 25;          // host time of one blocking collective or grouped optimizer call
constexpr double kFrameworkOptimizerCalls = 60;  // AdamW, EMA, clip and apply as grouped calls
constexpr double kTile = 128;

double wire_bytes(double elements, int ranks, double size) { return elements / ranks * (ranks - 1) * size; }

double replicated_elements(const GradientLayout& layout) {
  int64_t elements = 0;
  for (const Pack& pack : layout.packs) elements += pack.elements;
  return static_cast<double>(elements);
}

// What a step moves. The published stack has bf16, but for some of the replicated gradients; the other numbers are what
// optim/sharded_update.cpp does, which copies the mean into bf16 and a shard out of it where ranks exchange that.
struct Moved {
  double element;     // bytes of an element of a bank's gradient or update between ranks
  double replicated;  // bytes that one rank sends for all replicated gradients, there and back
  double clipped;     // memory traffic of an element: norm, and the clipped gradient as it is sent
  double momentum;    // the same of momentum and look-ahead
};
Moved moved_by(const Recipe& recipe, const GradientLayout& layout, const ScalingInputs& inputs) {
  if (inputs.schedule == Schedule::published)
    return {2, 2 * wire_bytes(replicated_elements(layout), inputs.ranks, 2.2), 4 + 4 + 2, 5 * 2};
  const bool narrow = layout.sent == DType::bf16, rounds = recipe.optim.momentum_precision == Precision::bf16;
  if (narrow && inputs.schedule == Schedule::early)
    throw InputError(
        "--schedule early: optim.exchange_precision = \"bf16\" rounds gradients once their clip is known, so none "
        "set out before; expected packed");
  return {static_cast<double>(size_of(layout.sent)), static_cast<double>(step_traffic(layout, inputs.ranks).replicated),
          4 + 4 + 4.0 + (narrow ? 4 + 2 : 0), 5 * 4.0 + (narrow ? 2 + 4 : 0) + (rounds ? 4 + 4 : 0)};
}

double products_per_token(const Recipe& recipe) {
  const ModelRecipe& m = recipe.model;
  const double d = static_cast<double>(m.dim), kv = d * static_cast<double>(m.kv_heads) / static_cast<double>(m.heads);
  return static_cast<double>(m.layers) * (2 * d * d + 2 * d * kv + 2 * d * static_cast<double>(m.mlp_hidden)) +
         d * static_cast<double>(m.vocab);
}

double copy_ms(double bytes, const Gpu& gpu) { return bytes / gpu.copy_tb_per_s * 1e-9; }

// One product of a batch of matrices: limited by the tiles it has, or by launching it.
double product_ms(double batch, double m, double n, double k, const Gpu& gpu) {
  const double tiles = batch * std::ceil(m / kTile) * std::ceil(n / kTile);
  const double fill = std::min(1.0, tiles / gpu.multiprocessors);
  return std::max(gpu.launch_us * 1e-3, 2 * batch * m * n * k / (gpu.gemm_tflops * fill) * 1e-9);
}

double newton_schulz_ms(const ShardedBank& bank, int steps, double momentum_bytes, const Gpu& gpu) {
  const auto batch = static_cast<double>(bank.shard);
  const double s = static_cast<double>(std::min(bank.shape[1], bank.shape[2])),
               l = static_cast<double>(std::max(bank.shape[1], bank.shape[2]));
  const double momentum = std::max(2 * gpu.launch_us * 1e-3, copy_ms(momentum_bytes * batch * s * l, gpu));
  return momentum +
         steps * (product_ms(batch, s, s, l, gpu) + product_ms(batch, s, s, s, gpu) + product_ms(batch, s, l, s, gpu));
}

// The two lanes.
class Lanes {
 public:
  explicit Lanes(const Gpu& gpu) : gpu_(gpu) {}
  void work(double ms) { kernels_ += ms; }
  size_t start(const std::string& name, double bytes, double ready) {
    const double begin = std::max(links_, ready);
    links_ = begin + gpu_.link_latency_us * 1e-3 + bytes / gpu_.link_gb_per_s * 1e-6;
    out.collectives.push_back({name, bytes, begin, links_, 0});
    return out.collectives.size() - 1;
  }
  size_t start(const std::string& name, double bytes) { return start(name, bytes, kernels_); }
  void wait(size_t id) {
    Collective& at = out.collectives[id];
    at.exposed_ms = std::max(0.0, at.end_ms - kernels_);  // also what it waited for the link itself
    kernels_ = std::max(kernels_, at.end_ms);
  }
  double now() const { return kernels_; }
  StepModel out;

 private:
  const Gpu& gpu_;
  double kernels_ = 0, links_ = 0;
};

double bank_bytes(int64_t elements, const ScalingInputs& inputs, const Moved& moved) {
  return wire_bytes(static_cast<double>(elements), inputs.ranks, moved.element);
}

// The largest bank leaves first, then the replicated gradients, whose update fills the time until that bank has come.
std::vector<size_t> start_reductions(Lanes& lanes, const GradientLayout& layout, const ScalingInputs& inputs,
                                     const Moved& moved) {
  std::vector<size_t> banks;
  size_t replicated = 0;
  for (const ShardedBank& bank : layout.matrices) {
    banks.push_back(lanes.start("reduce-scatter " + bank.bank->info.name, bank_bytes(bank.padded, inputs, moved)));
    if (banks.size() == 1 && inputs.schedule == Schedule::packed)
      replicated = lanes.start("all-reduce replicated", moved.replicated);
  }
  if (inputs.schedule == Schedule::packed) {
    lanes.wait(replicated);
    return banks;
  }
  for (int i = 0; i < kPublishedReductions; ++i) {
    lanes.work(kFrameworkCallUs * 1e-3);
    lanes.wait(lanes.start("all-reduce of one tensor", moved.replicated / kPublishedReductions));
  }
  return banks;
}

// Matrices that leave layer by layer while the backward pass, two thirds of the passes, goes on: each by itself and without the
// padding. A looped layer's leave after the backward of its first pass (optim/early_slices.h).
std::vector<size_t> start_early(Lanes& lanes, const GradientLayout& layout, const Recipe& recipe, const ScalingInputs& inputs,
                                const Moved& moved, double passes) {
  double bytes = 0;
  int64_t matrices = 0;
  for (const ShardedBank& bank : layout.matrices) {
    bytes += bank_bytes(bank.shape.numel(), inputs, moved);
    matrices += bank.shape[0];
  }
  const int64_t of_layer = std::max<int64_t>(1, matrices / recipe.model.layers);
  const double each = bytes / static_cast<double>(recipe.model.layers * of_layer);
  const LoopRecipe& loop = recipe.model.loop;
  const int64_t repeated = loop.count * (loop.end - loop.start + 1), walked = recipe.model.layers + repeated;
  std::vector<size_t> ids;
  for (int64_t layer = recipe.model.layers - 1; layer >= 0; --layer) {
    const int64_t first_walk = layer <= loop.end || loop.count == 0 ? layer : layer + repeated;
    const double done = static_cast<double>(walked - first_walk) / static_cast<double>(walked);
    size_t last = 0;
    for (int64_t i = 0; i < of_layer; ++i)
      last = lanes.start("reduce-scatter layer " + std::to_string(layer), each, passes * (1 + 2 * done) / 3);
    ids.push_back(last);
  }
  return ids;
}

void update_banks(Lanes& lanes, const GradientLayout& layout, const std::vector<size_t>& reductions, const Gpu& gpu,
                  const ScalingInputs& inputs, const Moved& moved) {
  constexpr int kSteps = 5;
  size_t before = 0;
  const ShardedBank* waiting = nullptr;
  const auto apply = [&] {
    lanes.wait(before);
    lanes.work(copy_ms(static_cast<double>(waiting->shape.numel()) * (4 + 4 + moved.element), gpu));
  };
  for (size_t i = 0; i < layout.matrices.size(); ++i) {
    const ShardedBank& bank = layout.matrices[i];
    lanes.wait(reductions[std::min(i, reductions.size() - 1)]);
    lanes.work(newton_schulz_ms(bank, kSteps, moved.momentum, gpu));
    const size_t gather = lanes.start("all-gather " + bank.bank->info.name, bank_bytes(bank.padded, inputs, moved));
    if (waiting != nullptr) apply();
    waiting = &bank;
    before = gather;
  }
  if (waiting != nullptr) apply();
}

}  // namespace

Gpu find_gpu(const std::string& name) {
  for (const Gpu& gpu : kGpus) {
    if (gpu.name == name) return gpu;
  }
  throw InputError("--gpu " + name + ": expected h100 or h200");
}

Schedule find_schedule(const std::string& name) {
  for (Schedule schedule : {Schedule::published, Schedule::packed, Schedule::early}) {
    if (name_of(schedule) == name) return schedule;
  }
  throw InputError("--schedule " + name + ": expected published, packed or early");
}

std::string name_of(Schedule schedule) {
  return schedule == Schedule::published ? "published" : schedule == Schedule::packed ? "packed" : "early";
}

double published_passes_ms(const Recipe& recipe, const Gpu& gpu, double tokens) {
  static const Recipe measured = load_recipe("pr1105");
  const PassTable table;
  const double layers = static_cast<double>(recipe.model.layers) / static_cast<double>(measured.model.layers);
  const double width = static_cast<double>(recipe.model.dim) / static_cast<double>(measured.model.dim);
  const double products = products_per_token(recipe) / products_per_token(measured);
  return tokens / table.tokens *
         (table.attention * layers * width + table.products * products +
          table.elementwise * layers * width * table.copy_tb_per_s / gpu.copy_tb_per_s);
}

StepModel model_step(const Recipe& recipe, const Gpu& gpu, const ScalingInputs& inputs) {
  const ParamStore params(parameter_table(recipe), ParamStore::Gradients::none);
  const GradientLayout layout = gradient_layout(recipe, params, inputs.ranks);
  const auto elements = static_cast<double>(params.flat_values().numel());
  Lanes lanes(gpu);
  const double passes = inputs.passes_ms > 0 ? inputs.passes_ms : published_passes_ms(recipe, gpu, inputs.tokens);
  std::vector<size_t> reductions;
  const Moved moved = moved_by(recipe, layout, inputs);
  if (inputs.schedule == Schedule::early) reductions = start_early(lanes, layout, recipe, inputs, moved, passes);
  lanes.work(passes);
  lanes.work(copy_ms(elements * moved.clipped, gpu));
  if (inputs.schedule == Schedule::early) {
    std::reverse(reductions.begin(), reductions.end());  // a bank is whole when its first layer's slice has come
    lanes.wait(lanes.start("all-gather clip coefficients", 2 * sizeof(double) * (inputs.ranks - 1)));
    lanes.wait(lanes.start("all-reduce replicated", moved.replicated));
  } else {
    reductions = start_reductions(lanes, layout, inputs, moved);
  }
  lanes.work(std::max(4 * gpu.launch_us * 1e-3, copy_ms(replicated_elements(layout) * 20, gpu)));  // AdamW
  if (inputs.schedule == Schedule::published) lanes.work(kFrameworkOptimizerCalls * kFrameworkCallUs * 1e-3);
  update_banks(lanes, layout, reductions, gpu, inputs, moved);
  lanes.work(copy_ms(elements * 12, gpu));  // EMA
  StepModel& out = lanes.out;
  out.step_ms = lanes.now();
  out.passes_ms = passes;
  for (const Collective& c : out.collectives) {
    out.wire_ms += c.end_ms - c.start_ms;
    out.exposed_ms += c.exposed_ms;
  }
  out.optimizer_ms = out.step_ms - passes - out.exposed_ms;
  return out;
}

const std::vector<Anchor>& published_steps() {
  static const std::vector<Anchor> steps{{"pr1105-early", 83.5}, {"pr1105", 87.7}};
  return steps;
}

}  // namespace fairway::bench
