#include "score/slot_offset.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/error.h"

namespace fairway {
namespace {

constexpr int64_t kParts = 16;  // of the rows: fixed, so that sums do not depend on the number of threads
constexpr int64_t kOutputsPerTask = 256;
constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEps = 1e-5, kWeightDecay = 1e-8;

// e^x for x <= 88, without branches so that loops over it become vectors; 0 below −87.3. Same fit as the kernels'.
inline float exp_of(float x) {
  constexpr float kRound = 12582912.0f;  // 1.5·2^23
  const float in = x < -87.0f ? -87.0f : x;
  const float n = (in * 1.44269504f + kRound) - kRound;
  const float r = (in - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 0.00139337332f;
  p = p * r + 0.00836323538f;
  p = p * r + 0.0416664642f;
  p = p * r + 0.166665766f;
  p = p * r + 0.5f;
  const float e = p * (r * r) + r + 1.0f;
  return e * std::bit_cast<float>((static_cast<int32_t>(n) + 127) << 23);
}

inline float tanh_of(float x) {
  const float size = std::fabs(x), u = x * x;
  const float clamped = size > 20.0f ? 20.0f : size;
  const float far = std::copysign(1.0f - 2.0f / (exp_of(2.0f * clamped) + 1.0f), x);
  float q = 0.0022957516f;
  q = q * u + -0.00834688415f;
  q = q * u + 0.0217699233f;
  q = q * u + -0.0539593995f;
  q = q * u + 0.133333042f;
  q = q * u + -0.333333332f;
  const float near = x + x * (u * q);
  return size < 0.625f ? near : far;
}

struct Row {
  std::vector<float> z, e;
  explicit Row(int64_t vocab) : z(static_cast<size_t>(vocab)), e(static_cast<size_t>(vocab)) {}

  // z and its log-sum-exp; |z| <= cap, so up to a cap of 40 nothing need be subtracted before the exponential.
  double fill(const float* u, const float* shift, float cap) {
    const float inverse = 1.0f / cap, low = cap <= 40.0f ? 0.0f : cap;
    const auto count = static_cast<int64_t>(z.size());
    for (int64_t v = 0; v < count; ++v) z[static_cast<size_t>(v)] = cap * tanh_of((u[v] + shift[v]) * inverse);
    for (int64_t v = 0; v < count; ++v) e[static_cast<size_t>(v)] = exp_of(z[static_cast<size_t>(v)] - low);
    constexpr int64_t kSums = 8;
    double sums[kSums] = {};
    int64_t v = 0;
    for (; v + kSums <= count; v += kSums)
      for (int64_t lane = 0; lane < kSums; ++lane) sums[lane] += static_cast<double>(e[static_cast<size_t>(v + lane)]);
    for (; v < count; ++v) sums[0] += static_cast<double>(e[static_cast<size_t>(v)]);
    double total = 0;
    for (const double sum : sums) total += sum;
    return std::log(total) + static_cast<double>(low);
  }
};

}  // namespace

SlotOffset::SlotOffset(const Tensor& embedding, double cap, double learning_rate, ThreadPool& pool)
    : embedding_(embedding),
      vocab_(embedding.dim(0)),
      width_(embedding.dim(1)),
      cap_(static_cast<float>(cap)),
      learning_rate_(learning_rate),
      pool_(&pool),
      gradient_(static_cast<size_t>(width_)),
      partials_(static_cast<size_t>(kParts * vocab_)) {
  reset();
}

void SlotOffset::reset() {
  for (auto* part : {&delta_, &m_, &v_}) part->assign(static_cast<size_t>(width_), 0.0f);
  shift_.assign(static_cast<size_t>(vocab_), 0.0f);
  steps_ = 0;
}

std::string SlotOffset::state() const {
  std::string bytes(reinterpret_cast<const char*>(&steps_), sizeof steps_);
  for (const auto* part : {&delta_, &m_, &v_})
    bytes.append(reinterpret_cast<const char*>(part->data()), part->size() * sizeof(float));
  return bytes;
}

void SlotOffset::take_state(std::string_view bytes) {
  const size_t size = delta_.size() * sizeof(float);
  FAIRWAY_ASSERT(bytes.size() == sizeof steps_ + 3 * size, "the state of another model's offset");
  std::memcpy(&steps_, bytes.data(), sizeof steps_);
  bytes.remove_prefix(sizeof steps_);
  for (auto* part : {&delta_, &m_, &v_}) {
    std::memcpy(part->data(), bytes.data(), size);
    bytes.remove_prefix(size);
  }
  refresh();
}

void SlotOffset::refresh() {
  const float* e = embedding_.as<float>();
  pool_->parallel_for((vocab_ + kOutputsPerTask - 1) / kOutputsPerTask, [&](int64_t task) {
    for (int64_t v = task * kOutputsPerTask; v < std::min(vocab_, (task + 1) * kOutputsPerTask); ++v) {
      double sum = 0;
      for (int64_t d = 0; d < width_; ++d)
        sum += static_cast<double>(e[v * width_ + d]) * static_cast<double>(delta_[static_cast<size_t>(d)]);
      shift_[static_cast<size_t>(v)] = static_cast<float>(sum);
    }
  });
}

std::span<const float> SlotOffset::gradient(std::span<const SlotRow> rows) {
  const auto count = static_cast<int64_t>(rows.size());
  const float inverse = 1.0f / cap_;
  pool_->parallel_for(kParts, [&](int64_t part) {
    Row row(vocab_);
    float* sums = partials_.data() + part * vocab_;
    std::fill_n(sums, vocab_, 0.0f);
    for (int64_t j = count * part / kParts; j < count * (part + 1) / kParts; ++j) {
      const SlotRow& at = rows[static_cast<size_t>(j)];
      const double lse = row.fill(at.logits, shift_.data(), cap_);
      const float low = cap_ <= 40.0f ? 0.0f : cap_;
      const auto scale = static_cast<float>(std::exp(static_cast<double>(low) - lse));
      for (int64_t v = 0; v < vocab_; ++v) {
        const float t = row.z[static_cast<size_t>(v)] * inverse;
        sums[v] += row.e[static_cast<size_t>(v)] * scale * (1.0f - t * t);
      }
      const float t = row.z[static_cast<size_t>(at.target)] * inverse;
      sums[at.target] -= 1.0f - t * t;
    }
  });
  std::vector<double> sum(static_cast<size_t>(width_));
  const float* e = embedding_.as<float>();
  for (int64_t v = 0; v < vocab_; ++v) {
    double r = 0;
    for (int64_t part = 0; part < kParts; ++part) r += static_cast<double>(partials_[static_cast<size_t>(part * vocab_ + v)]);
    for (int64_t d = 0; d < width_; ++d) sum[static_cast<size_t>(d)] += r * static_cast<double>(e[v * width_ + d]);
  }
  for (size_t d = 0; d < sum.size(); ++d) gradient_[d] = static_cast<float>(sum[d] / static_cast<double>(count));
  return gradient_;
}

double SlotOffset::loss(std::span<const SlotRow> rows) {
  Row row(vocab_);
  double total = 0;
  for (const SlotRow& at : rows) {
    const double lse = row.fill(at.logits, shift_.data(), cap_);
    total += lse - static_cast<double>(row.z[static_cast<size_t>(at.target)]);
  }
  return total / static_cast<double>(rows.size());
}

void SlotOffset::step(std::span<const SlotRow> rows) {
  gradient(rows);
  ++steps_;
  const double k = static_cast<double>(steps_);
  const auto correct1 = static_cast<float>(1 / (1 - std::pow(kBeta1, k)));
  const auto correct2 = static_cast<float>(1 / (1 - std::pow(kBeta2, k)));
  const auto lr = static_cast<float>(learning_rate_), keep = static_cast<float>(1 - learning_rate_ * kWeightDecay);
  for (size_t d = 0; d < delta_.size(); ++d) {
    const float g = gradient_[d];
    m_[d] = static_cast<float>(kBeta1) * m_[d] + static_cast<float>(1 - kBeta1) * g;
    v_[d] = static_cast<float>(kBeta2) * v_[d] + static_cast<float>(1 - kBeta2) * g * g;
    delta_[d] = keep * delta_[d] - lr * (m_[d] * correct1) / (std::sqrt(v_[d] * correct2) + static_cast<float>(kEps));
  }
  refresh();
}

TargetScore SlotOffset::score(const SlotRow& at, const Tilt& tilt, std::vector<float>* copy) const {
  Row row(vocab_);
  const double lse = row.fill(at.logits, shift_.data(), cap_);
  const double nll = lse - static_cast<double>(row.z[static_cast<size_t>(at.target)]);
  return finish(Distribution{row.z, static_cast<float>(lse), {}}.tilted(tilt), nll, at.target, copy);
}

}  // namespace fairway
