// Hessians for quantizing after training: from text the model makes itself, or from training data (scoring spec §4.6, §4.7).
#pragma once

#include <functional>
#include <limits>

#include "comm/communicator.h"
#include "data/loader.h"
#include "model/model.h"
#include "quant/hessians.h"

namespace fairway {

// Told as the work goes on: what is being done, how much of it is done, out of how much.
using CalibrationProgress = std::function<void(const char* what, int64_t done, int64_t total)>;

// Where and of what Hessians are made; `weights` are the ones to be quantized. Several ranks share the work; each gets the
// whole result, which does not depend on how many there are.
struct CalibrationModel {
  const Recipe& recipe;
  const ParamStore& weights;
  ModelStage stage;
  Executor& executor;
  OpSite site;
  CalibrationProgress progress{};
  Communicator& comm = single_process();
};

struct SelfCalibration {
  int64_t tokens = 64 * 2048;  // in all; rows as long as in training, and at most kLongestRow
  double temperature = 0.8;
  uint64_t seed = 0;
  bool begin_with_bos = false;  // else the first token is uniform over the vocabulary
};
inline constexpr int64_t kLongestRow = 2048;

// `rows` rows of text by the model, `length` tokens each.
std::vector<int32_t> calibration_text(const CalibrationModel& model, const SelfCalibration& options, int64_t rows,
                                      int64_t length);

// Rows of text by the model, then one pass over all but the last token of each. Finished; `problems` gets finish()'s sentences.
HessianStore calibrate_self(const CalibrationModel& model, const SelfCalibration& options, std::vector<std::string>& problems);

// `batches` micro-batches of the loader; of a rank's share only the first `most`, for whoever wants to know what all will take.
HessianStore calibrate_train(const CalibrationModel& model, data::Loader& loader, int64_t batches,
                             std::vector<std::string>& problems, int64_t most = std::numeric_limits<int64_t>::max());

}  // namespace fairway
