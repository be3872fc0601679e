// The recipe's settings of the sampler and of the loader of one of the communicator's ranks.
#pragma once

#include "comm/communicator.h"
#include "data/loader.h"
#include "recipe/recipe.h"

namespace fairway {

data::SamplerOptions sampler_options(const Recipe& recipe);
data::LoaderOptions loader_options(const Recipe& recipe, const Communicator& comm = single_process());

}  // namespace fairway
