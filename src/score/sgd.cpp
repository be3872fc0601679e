#include "score/sgd.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace fairway {
namespace {

constexpr int64_t kPiece = 1 << 16;

// How many of the first axis's slices belong to one block: banks of query and output hold two for each layer.
bool is_frozen(const ParamInfo& info, int64_t slice, const ModelRecipe& model, int64_t blocks, FreezeSemantics semantics) {
  const bool vectors = info.name.starts_with("block."), bank = info.name.starts_with("bank.");
  if (!vectors && !(bank && semantics == FreezeSemantics::intent)) return false;
  return slice % model.layers < blocks;
}

}  // namespace

std::vector<FlatRange> trainable_ranges(const ParamStore& params, const ModelRecipe& model, int64_t frozen_blocks,
                                        FreezeSemantics semantics) {
  std::vector<FlatRange> out;
  for (const ParamBank& bank : params.banks()) {
    const int64_t begin = (bank.value.data - params.flat_values().data) / static_cast<int64_t>(sizeof(float));
    const bool per_layer = bank.info.shape.size() > 1 || bank.info.name.starts_with("block.");
    const int64_t slices = per_layer ? bank.value.dim(0) : 1, size = bank.value.numel() / slices;
    for (int64_t slice = 0; slice < slices; ++slice) {
      if (is_frozen(bank.info, slice, model, frozen_blocks, semantics)) continue;
      const FlatRange range{begin + slice * size, begin + (slice + 1) * size};
      if (!out.empty() && out.back().end == range.begin) {
        out.back().end = range.end;
      } else {
        out.push_back(range);
      }
    }
  }
  return out;
}

MaskedSgd::MaskedSgd(ParamStore& params, const std::vector<FlatRange>& trainable, double momentum, double clip,
                     ThreadPool& pool)
    : params_(&params),
      momentum_(momentum),
      clip_(clip),
      pool_(&pool),
      buffer_(static_cast<size_t>(params.flat_values().numel())) {
  for (const FlatRange& range : trainable)
    for (int64_t at = range.begin; at < range.end; at += kPiece) pieces_.push_back({at, std::min(range.end, at + kPiece)});
}

void MaskedSgd::reset() { std::fill(buffer_.begin(), buffer_.end(), 0.0f); }

void MaskedSgd::clear_gradients() { std::memset(params_->flat_grads().data, 0, params_->flat_grads().spec.bytes()); }

void MaskedSgd::step(double learning_rate) {
  const float* gradient = params_->flat_grads().as<float>();
  float* value = params_->flat_values().as<float>();
  const auto count = static_cast<int64_t>(pieces_.size());
  double coefficient = 1;
  if (clip_ > 0) {
    std::vector<double> squares(pieces_.size());
    pool_->parallel_for(count, [&](int64_t piece) {
      double sum = 0;
      for (int64_t i = pieces_[static_cast<size_t>(piece)].begin; i < pieces_[static_cast<size_t>(piece)].end; ++i)
        sum += static_cast<double>(gradient[i]) * static_cast<double>(gradient[i]);
      squares[static_cast<size_t>(piece)] = sum;
    });
    double total = 0;
    for (const double sum : squares) total += sum;
    coefficient = std::min(1.0, clip_ / (std::sqrt(total) + 1e-6));
  }
  const auto scale = static_cast<float>(coefficient), keep = static_cast<float>(momentum_);
  const auto rate = static_cast<float>(learning_rate);
  pool_->parallel_for(count, [&](int64_t piece) {
    for (int64_t i = pieces_[static_cast<size_t>(piece)].begin; i < pieces_[static_cast<size_t>(piece)].end; ++i) {
      float& momentum = buffer_[static_cast<size_t>(i)];
      momentum = keep * momentum + scale * gradient[i];
      value[i] -= rate * momentum;
    }
  });
}

}  // namespace fairway
