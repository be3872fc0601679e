#include "pack/calibrate.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "comm/share_bytes.h"
#include "generate/sample_rows.h"
#include "pack/observed_forward.h"
#include "pack/shared_hessians.h"

namespace fairway {
namespace {

constexpr size_t kMostCacheBytes = size_t{3} << 29, kMostOnDevice = size_t{8} << 30;
constexpr int64_t kMostRows = 128;     // made at once: a step reads all weights
constexpr int64_t kPassTokens = 4096;  // of one forward pass

// The largest divisor of n that is at most `most` (and at least 1).
int64_t divisor_up_to(int64_t n, int64_t most) {
  int64_t best = 1;
  for (int64_t d = 1; d <= std::min(n, most); ++d) best = n % d == 0 ? d : best;
  return best;
}

// Rows [first, first + rows) of the model's own text, `length` tokens each.
std::vector<int32_t> make_rows(const CalibrationModel& model, const SelfCalibration& options, int64_t first, int64_t rows,
                               int64_t length) {
  const bool device = model.executor.on_device();
  const auto fitting = static_cast<int64_t>((device ? kMostOnDevice : kMostCacheBytes) /
                                            Decoder::cache_bytes(model.recipe, length, model.stage));
  const int64_t together = divisor_up_to(rows, std::clamp<int64_t>(fitting, 1, kMostRows));
  Decoder decoder(model.recipe, model.weights, together, length, model.stage, model.executor,
                  device ? std::optional(Drawing{options.temperature}) : std::nullopt);
  std::vector<int32_t> text(static_cast<size_t>(rows * length));
  for (int64_t row = 0; row < rows; row += together) {
    const RowSampling how{.temperature = options.temperature,
                          .seed = options.seed,
                          .first_row = first + row,
                          .first_token = options.begin_with_bos ? static_cast<int32_t>(model.recipe.model.bos) : -1,
                          .vocab = model.recipe.model.vocab};
    sample_rows(decoder, how, model.site.pool(),
                std::span(text).subspan(static_cast<size_t>(row * length), static_cast<size_t>(together * length)),
                [&](int64_t t) {
                  if (model.progress) model.progress("calibration text", row * length + t * together, rows * length);
                });
  }
  return text;
}

}  // namespace

// A row's text does not depend on the rows beside it, so ranks share them; on a device it might, since products of other sizes
// run other kernels, so there every rank makes all.
std::vector<int32_t> calibration_text(const CalibrationModel& model, const SelfCalibration& options, int64_t rows,
                                      int64_t length) {
  if (model.comm.size() == 1 || model.executor.on_device()) return make_rows(model, options, 0, rows, length);
  const auto [begin, end] = SharedHessians::part_of(model.comm, rows);
  std::vector<int32_t> own;
  if (end > begin) own = make_rows(model, options, begin, end - begin, length);
  std::vector<int32_t> text;
  const std::string bytes(reinterpret_cast<const char*>(own.data()), own.size() * sizeof(int32_t));
  for (const std::string& part : gather_bytes(model.comm, bytes)) {
    const size_t before = text.size();
    text.resize(before + part.size() / sizeof(int32_t));
    std::memcpy(text.data() + before, part.data(), part.size());
  }
  return text;
}

HessianStore calibrate_self(const CalibrationModel& model, const SelfCalibration& options, std::vector<std::string>& problems,
                            OwnText* kept) {
  const int64_t length = std::clamp<int64_t>(model.recipe.data.seq_len, 2, options.longest_row), seen = length - 1;
  const int64_t rows = std::max<int64_t>(1, options.tokens / length);
  std::vector<int32_t> text = calibration_text(model, options, rows, length);
  const int64_t together = divisor_up_to(rows, std::max<int64_t>(1, kPassTokens / seen)), batches = rows / together;
  SharedHessians shared(model.site, model.comm, batches);
  ObservedForward forward(model.recipe, model.weights, {.tokens = together * seen, .row_length = seen}, model.stage,
                          model.executor);
  std::vector<int32_t> tokens(static_cast<size_t>(together * seen));
  for (int64_t batch = 0; batch < batches; ++batch) {
    if (!shared.mine(batch)) continue;
    for (int64_t r = 0; r < together; ++r)
      std::copy_n(text.begin() + (batch * together + r) * length, seen, tokens.begin() + r * seen);
    HessianStore& hessians = shared.store_for(batch);
    forward.run(tokens, {}, hessians);
    hessians.end_batch();
    if (shared.ends_group(batch)) forward.give(hessians);
    if (model.progress) model.progress("Hessians", (batch + 1) * together, rows);
  }
  if (kept != nullptr) *kept = {std::move(text), length};
  return shared.finish(problems);
}

HessianStore calibrate_train(const CalibrationModel& model, data::Loader& loader, int64_t batches,
                             std::vector<std::string>& problems, int64_t most) {
  SharedHessians shared(model.site, model.comm, batches);
  std::optional<ObservedForward> forward;
  for (int64_t i = 0, done = 0; i < batches && done < most; ++i) {
    const data::Batch& batch = loader.next();
    if (!shared.mine(i)) continue;
    ++done;
    HessianStore& hessians = shared.store_for(i);
    const auto count = static_cast<size_t>(batch.tokens.numel());
    if (!forward) {
      const ObservedForward::Form form{batch.tokens.numel(), batch.tokens.cols(), batch.segment_start.present};
      forward.emplace(model.recipe, model.weights, form, model.stage, model.executor);
    }
    forward->run(
        {batch.tokens.as<int32_t>(), count},
        batch.segment_start ? std::span<const int32_t>(batch.segment_start.as<int32_t>(), count) : std::span<const int32_t>(),
        hessians);
    hessians.end_batch();
    if (shared.ends_group(i)) forward->give(hessians);
    if (model.progress) model.progress("Hessians", i + 1, batches);
  }
  return shared.finish(problems);
}

}  // namespace fairway
