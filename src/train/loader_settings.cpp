#include "train/loader_settings.h"

#include "train/trainer.h"

namespace fairway {

data::SamplerOptions sampler_options(const Recipe& recipe) {
  const Geometry geometry = micro_batch_geometry(recipe);
  const int64_t per_rank = recipe.train.batch_tokens / recipe.train.emulated_world;
  return {.kind = recipe.data.sampler,
          .length = geometry.row_length,
          .rows = per_rank / geometry.row_length,
          .world = static_cast<int>(recipe.train.emulated_world),
          .seed = static_cast<uint64_t>(recipe.train.seed),
          .bos = static_cast<uint16_t>(recipe.model.bos),
          .max_segment = recipe.data.max_segment};
}

data::LoaderOptions loader_options(const Recipe& recipe, const Communicator& comm) {
  return {.rank = comm.rank(),
          .ranks = comm.size(),
          .split = recipe.train.micro_batches() / recipe.train.emulated_world,
          .vocab = static_cast<int>(recipe.model.vocab)};
}

}  // namespace fairway
