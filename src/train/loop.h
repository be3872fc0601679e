// The training loop: clock or steps, stage switches, records, checkpoints, signals (spec §10).
//
// What the clock counts: everything from the first step's begin to the last step's end, except validation, as published logs
// do (scoring spec §8). So checkpoints on the way, with the forecast of the artifact's size, and averaging are inside; what
// comes after the last step, its checkpoint among it, is not training any more. No step and no checkpoint begins that may not
// fit into what is left, judged by how long those before it took; a checkpoint is made, and so measured, before the clock
// begins if others will follow.
#pragma once

#include <functional>
#include <optional>

#include "base/clock.h"
#include "data/loader.h"
#include "train/run_folder.h"
#include "train/trainer.h"

namespace fairway {

struct Validation {
  double loss = 0;  // nats per token
  double bpb = 0;   // bits per byte
  double seconds = 0;
};
// Scores weights (flat, as in ParamStore) on held-out tokens; given by the caller, because training cannot open those.
using Validator = std::function<Validation(const Tensor& flat_weights, ModelStage stage)>;

struct TrainOptions {
  bool resume = false;
  bool quiet = false;
  std::function<double()> clock = seconds_now;  // seconds; its zero means nothing
  uint64_t seed = 0;
  const ParamStore* start = nullptr;  // weights to begin with instead of the seed's; of another run of the same model
  std::function<double()>
      measure_peak;  // GFLOP/s of the machine, asked at the start and at checkpoints: neighbours come and go
  std::function<double()> memory_bytes;  // the most that the process has taken where it trains; may be empty
  double started = 0;                    // steady-clock seconds when the process began
  // Foresees, by measuring, the seconds of work after training that the rules count as training (calibration on its data). The
  // clock keeps them free, or train.reserve_seconds where that is more. May be empty; asked once the weights are there, and
  // rank 0's answer counts.
  std::function<double()> counted_after;
  std::function<double(const Tensor& flat_weights)> forecast_bytes;  // of the artifact as published; may be empty
  Validator validate;                                                // may be empty: no held-out data
  // Work on the side, each may be empty: after every step, inside of its time; and before a checkpoint is written.
  std::function<void(int64_t step, double learning_rate_scale, ModelStage stage)> after_step;
  std::function<void(int64_t step)> before_checkpoint;
  // Steps whose results the host may not have read yet while it asks for more: the last step's loss comes a step late then, and
  // the device never waits. −1: one where a device trains alone.
  int64_t behind = -1;
  std::string tokenizer, tokenizer_told_by;  // identity of the shards' tokenizer and the file that tells it; may be empty
  std::string profile;                       // file for a timeline of a few steps; empty: none
  std::string note;                          // for the log of a run that begins; empty: none
};

struct TrainSummary {
  int64_t steps = 0;
  double loss = 0;             // of the last step
  double train_seconds = 0;    // validation not counted
  double startup_seconds = 0;  // process start to first step
  double step_ms = 0;          // mean
  double tokens_per_second = 0;
  double speed_of_light = 0;  // share of the machine's peak, 0 … 1
  double data_wait_seconds = 0;
  ModelStage stage;                      // at the end
  std::optional<Validation> validation;  // of the averaged weights
  bool interrupted = false;
};

// Trains to the recipe's end and writes averaged.safetensors; on SIGINT, SIGTERM or SIGUSR1 saves a checkpoint and returns
// early. Every rank of the trainer's communicator calls it; only rank 0's folder is written.
TrainSummary train(const Recipe& recipe, Trainer& trainer, data::Loader& loader, RunFolder& folder, ThreadPool& pool,
                   const TrainOptions& options);

}  // namespace fairway
