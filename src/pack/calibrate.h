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

// Half the text that published systems take, in shorter rows: as good on the demo (docs/packing.md), and made in a third of the
// time, since a token reads the keys and values of all before it.
struct SelfCalibration {
  int64_t tokens = 65536;     // in all
  int64_t longest_row = 512;  // rows are as long as in training, and at most so long
  double temperature = 0.8;
  uint64_t seed = 0;
  bool begin_with_bos = false;  // else the first token is uniform over the vocabulary

  static SelfCalibration as_published() { return {.tokens = 64 * 2048, .longest_row = 2048}; }
};

struct OwnText {
  std::vector<int32_t> tokens;  // (rows, length)
  int64_t length = 0;
};

// `rows` rows of text by the model, `length` tokens each.
std::vector<int32_t> calibration_text(const CalibrationModel& model, const SelfCalibration& options, int64_t rows,
                                      int64_t length);

// Rows of text by the model, then one pass over all but the last token of each. Finished; `problems` gets finish()'s sentences,
// `kept` the text.
HessianStore calibrate_self(const CalibrationModel& model, const SelfCalibration& options, std::vector<std::string>& problems,
                            OwnText* kept = nullptr);

// `batches` micro-batches of the loader; of a rank's share only the first `most`, for whoever wants to know what all will take.
HessianStore calibrate_train(const CalibrationModel& model, data::Loader& loader, int64_t batches,
                             std::vector<std::string>& problems, int64_t most = std::numeric_limits<int64_t>::max());

}  // namespace fairway
