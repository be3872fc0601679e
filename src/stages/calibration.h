// Hessians for the commands that quantize, by the recipe's or the user's choice of source.
#pragma once

#include <filesystem>
#include <memory>

#include "pack/calibrate.h"
#include "pack/divergence.h"
#include "pack/online.h"
#include "quant/tensor_moments.h"
#include "stages/machine.h"
#include "stages/weights.h"
#include "train/loop.h"

namespace fairway {

struct CalibrationRequest {
  const WeightSource& source;
  Calibration from = Calibration::self;
  std::filesystem::path data;              // of "train"; empty: RUN/data
  SelfCalibration own{};                   // of "self"; its seed is the recipe's
  const OwnText* text = nullptr;           // what "self" has made already, of the same weights; null: nothing
  const HessianStore* hessians = nullptr;  // of the same weights, for moments of outputs where the recipe wants them
};

// Finished. Sentences about Hessians that cannot be used go to standard error. InputError when "online" finds no file in the
// run, or "train" no shards. Ranks share the work; each gets the result. `kept` gets the text of "self".
HessianStore make_hessians(const CalibrationRequest& request, Machine& machine, Communicator& comm, bool quiet,
                           OwnText* kept = nullptr);

// Of the same source: training data, or else text of the model's own.
TensorMoments make_moments(const CalibrationRequest& request, Machine& machine, Communicator& comm, bool quiet);

// Of text of the model's own, whatever the source: what training data gives counts as training.
std::unique_ptr<KlDivergence> make_divergence(const CalibrationRequest& request, Machine& machine, Communicator& comm,
                                              bool quiet);

bool wants_hessians(const QuantRecipe& quant);

// Seconds that the run's calibration will take, as far as the rules count it as training: 0 unless it reads training data.
// Measured by calibrating on a few batches. Every rank calls it; ranks share the work as they will then.
double foresee_calibration(const Recipe& recipe, const ParamStore& weights, const data::ShardSet& shards, Machine& machine,
                           Communicator& comm);

inline constexpr const char* kHessianFile = "hessians.safetensors";  // in the run folder

// Online calibration beside a training run, whose hooks it fills in; nothing when the recipe does not ask for it.
class OnlineBesideTraining {
 public:
  OnlineBesideTraining(const Recipe& recipe, const Trainer& trainer, const data::ShardSet& shards, const RunFolder& folder,
                       Machine& machine, TrainOptions& options);

 private:
  std::unique_ptr<data::Loader> loader_;
  std::unique_ptr<OnlineCalibration> online_;
};

}  // namespace fairway
