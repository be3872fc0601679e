#include "calibrate/observed_forward.h"

#include <algorithm>

#include "autograd/tape.h"
#include "base/error.h"

namespace fairway {
namespace {

size_t io_bytes(const Recipe& recipe, const ObservedForward::Form& form) {
  const int64_t numbers = 3 * form.tokens + form.row_length * recipe.model.rope.dims;
  return static_cast<size_t>(numbers) * 4 + 8 * kArenaAlignment;
}

void fill(const Tensor& to, std::span<const int32_t> from) {
  FAIRWAY_ASSERT(to.numel() == static_cast<int64_t>(from.size()), "a calibration batch of another size than the program's");
  std::copy(from.begin(), from.end(), to.as<int32_t>());
}

int64_t side_of(const Program& program, const ObservePoint& point) {
  return program.values[static_cast<size_t>(point.value)].spec.shape.last();
}

// Sides of the points that weights read; a looped layer has one for all its passes.
std::map<std::string, int64_t> sides_of(const Program& program) {
  std::map<std::string, int64_t> sides;
  for (const ObservePoint& point : program.observed)
    if (is_hessian_point(point.name)) sides[point.name] = side_of(program, point);
  return sides;
}

int64_t numbers_of(const std::map<std::string, int64_t>& sides) {
  int64_t numbers = 0;
  for (const auto& [point, side] : sides) numbers += side * side;
  return numbers;
}

// Has every observed value multiplied by itself right after it is made.
void add_products(Program& program, const std::map<std::string, Tensor>& sums) {
  std::map<std::string, int32_t> values;
  for (const auto& [point, sum] : sums) {
    values[point] = static_cast<int32_t>(program.values.size());
    program.values.push_back({point, sum.spec, sum, 0});
  }
  std::vector<Call> calls;
  auto point = program.observed.begin();
  for (size_t i = 0; i < program.calls.size(); ++i) {
    calls.push_back(std::move(program.calls[i]));
    for (; point != program.observed.end() && point->call == i; ++point)
      if (const auto sum = values.find(point->name); sum != values.end())
        calls.push_back({.op = HessianAccumulate{}, .label = point->name, .in = {sum->second, point->value}});
  }
  program.calls = std::move(calls);
  program.observed.clear();
  plan_memory(program);
}

}  // namespace

ObservedForward::OnDevice::OnDevice(Program& program)
    : memory("second moments", static_cast<size_t>(numbers_of(sides_of(program))) * sizeof(double),
             Arena::Filled::by_programs) {
  const auto sides = sides_of(program);
  all = memory.make("second moments", {{numbers_of(sides)}, DType::f64});
  int64_t begin = 0;
  for (const auto& [point, side] : sides) {
    points[point] = make_view(all.data + static_cast<size_t>(begin) * sizeof(double), {{side, side}, DType::f64});
    begin += side * side;
  }
  add_products(program, points);
  Tape tape;
  tape.call(Fill{}, {tape.input("second moments", all)});
  clear = std::make_unique<BoundProgram>(std::move(tape).finish());
}

ObservedForward::ObservedForward(const Recipe& recipe, const ParamStore& params, const Form& form, ModelStage stage,
                                 Executor& executor)
    : executor_(&executor), io_("calibration inputs", io_bytes(recipe, form)) {
  const Spec indices{{form.tokens}, DType::i32};
  inputs_.tokens = io_.make("tokens", indices);
  inputs_.targets = io_.make("targets", indices);  // stay zero: the loss is not read
  if (form.packed) inputs_.segment_start = io_.make("segment_start", indices);
  inputs_.rope = io_.make("rope", {rope_shape(recipe, form.row_length), DType::f32});
  inputs_.row_length = form.row_length;
  fill_rope(recipe, inputs_.rope);
  Tape tape;
  build_model(tape, recipe, params, inputs_, stage);
  Program program = std::move(tape).finish();
  if (executor.stream() != nullptr) sums_ = std::make_unique<OnDevice>(program);
  program_ = std::make_unique<BoundProgram>(std::move(program));
}

void ObservedForward::run(std::span<const int32_t> tokens, std::span<const int32_t> segment_start, HessianStore& hessians) {
  fill(inputs_.tokens, tokens);
  if (inputs_.segment_start) fill(inputs_.segment_start, segment_start);
  if (!sums_)
    return executor_->run(*program_, [&](std::string_view point, const Tensor& rows) { hessians.accumulate(point, rows); });
  for (const Tensor& input : {inputs_.tokens, inputs_.segment_start}) executor_->to_device(input);
  executor_->run(*program_);
  sums_->used = true;
}

void ObservedForward::give(HessianStore& hessians) {
  if (!sums_ || !sums_->used) return;
  executor_->to_host(sums_->all);
  for (const auto& [point, sum] : sums_->points)
    hessians.add_sums(point, sum.cols(), {sum.as<double>(), static_cast<size_t>(sum.numel())});
  executor_->run(*sums_->clear);
  sums_->used = false;
}

}  // namespace fairway
