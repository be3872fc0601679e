#include "model/param_store.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace fairway {
namespace {

size_t total_bytes(const std::vector<ParamInfo>& table, DType real) {
  size_t bytes = 0;
  for (const ParamInfo& info : table) bytes += align_up(static_cast<size_t>(info.count()) * size_of(real));
  return bytes;
}

}  // namespace

Shape shape_of(const ParamInfo& info) {
  if (info.shape.empty()) return {1};
  Shape shape;
  for (int64_t size : info.shape) shape.dims[shape.rank++] = size;
  return shape;
}

ParamStore::ParamStore(const std::vector<ParamInfo>& table, Gradients gradients, DType real, const std::set<ParamId>& elsewhere)
    : values_("params", total_bytes(table, real)),
      grads_("gradients", gradients == Gradients::kept ? total_bytes(table, real) : 0) {
  for (const ParamInfo& info : table) {
    const Spec spec{shape_of(info), real};
    const auto offset = static_cast<int64_t>(values_.used() / size_of(real));
    const bool here = !info.id || !elsewhere.contains(*info.id);
    const Tensor value = here ? values_.make(info.name, spec) : make_view(nullptr, spec);
    ParamBank bank{info, value, {}, static_cast<int32_t>(banks_.size()), offset};
    if (gradients == Gradients::kept) bank.grad = grads_.make(info.name, spec);
    banks_.push_back(std::move(bank));
  }
  flat_values_ = values_.all(real);
  if (gradients == Gradients::kept) flat_grads_ = grads_.all(real);
}

bool ParamStore::has(ParamId id) const {
  return std::any_of(banks_.begin(), banks_.end(), [&](const ParamBank& bank) { return bank.info.id == id; });
}

const ParamBank& ParamStore::bank(ParamId id) const {
  const auto found = std::find_if(banks_.begin(), banks_.end(), [&](const ParamBank& bank) { return bank.info.id == id; });
  FAIRWAY_ASSERT(found != banks_.end(), "the model has no parameter '" + name_of(id) + "'");
  return *found;
}

const ParamBank& ParamStore::bank(AdapterId id) const {
  const auto found = std::find_if(banks_.begin(), banks_.end(), [&](const ParamBank& bank) { return bank.info.adapter == id; });
  FAIRWAY_ASSERT(found != banks_.end(), "the store has no such adapter");
  return *found;
}

void ParamStore::set_values(const Tensor& flat) {
  FAIRWAY_ASSERT(flat.spec == flat_values_.spec, "weights of another model");
  std::memcpy(flat_values_.data, flat.data, flat.spec.bytes());
}

std::vector<ParamInfo> ParamStore::table() const {
  std::vector<ParamInfo> out;
  for (const ParamBank& bank : banks_) out.push_back(bank.info);
  return out;
}

}  // namespace fairway
