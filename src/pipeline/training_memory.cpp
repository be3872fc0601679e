#include "pipeline/training_memory.h"

#include "model/model.h"
#include "ops/cuda/lowering.h"
#include "train/trainer.h"

namespace fairway::pipeline {
namespace {

// Weights, gradients of a rank and of all, momentum or two moments, averages: floats for each weight.
constexpr double kFloatsForAWeight = 8;
constexpr double kWorkingCopy = 0.5;  // of a weight on a device that computes in bf16, in floats
// Libraries and scratch: an H200 held 18.5 GB while pr1105 trained with 98,304 tokens, where all else takes 17.5.
constexpr double kBesideOnADevice = 1e9;

bool on_device(Backend backend) { return backend == Backend::cuda || backend == Backend::cuda_f32; }

size_t planned_bytes(const Program& program, Backend backend) {
  if (!on_device(backend)) return program.arena_bytes;
  const Program lowered = cuda::lower(program, backend).program;
  size_t bytes = lowered.arena_bytes;
  for (const Value& value : lowered.values)
    if (value.place == Value::Place::apart) bytes += value.spec.bytes();
  return bytes;
}

// Of the largest program that training runs.
size_t activation_bytes(const Recipe& recipe, const ParamStore& params, Backend backend) {
  const Geometry geometry = micro_batch_geometry(recipe);
  const Spec indices{{geometry.tokens}, DType::i32}, rope{rope_shape(recipe, geometry.row_length), DType::f32};
  Arena io("inputs", 3 * align_up(indices.bytes()) + align_up(rope.bytes()) + 1024);
  ModelInputs inputs{.tokens = io.make("tokens", indices), .targets = io.make("targets", indices)};
  if (geometry.packed) inputs.segment_start = io.make("segment_start", indices);
  inputs.rope = io.make("rope", rope);
  inputs.loss_gradient = io.make("loss gradient", {{1}, DType::f32});
  inputs.row_length = geometry.row_length;
  Tape tape;
  const ModelOutputs outputs =
      build_model(tape, recipe, params, inputs, {recipe.model.loop.count > 0, recipe.train.qat.enabled});
  const Var gradient = tape.input("loss gradient", inputs.loss_gradient);
  return planned_bytes(std::move(tape).finish(outputs.loss, gradient).program, backend);
}

}  // namespace

double training_bytes(const Recipe& recipe, int64_t micro_batch, Backend backend) {
  Recipe smaller = recipe;
  smaller.train.micro_batch_tokens = micro_batch;
  const ParamStore params(parameter_table(recipe), ParamStore::Gradients::kept);  // or nothing is saved for them
  const double floats = kFloatsForAWeight + (backend == Backend::cuda ? kWorkingCopy : 0);
  return floats * static_cast<double>(params.flat_values().spec.bytes()) +
         static_cast<double>(activation_bytes(smaller, params, backend)) + (on_device(backend) ? kBesideOnADevice : 0);
}

}  // namespace fairway::pipeline
