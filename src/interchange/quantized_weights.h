// What published artifacts hold of a weight: integers with a step a row, a low-rank correction, or the number itself.
#pragma once

#include <string>

#include "interchange/torch_file.h"
#include "interchange/weight_set.h"

namespace fairway::interchange {

// `kinds` is the file's 'm': {name: kind}. Every tensor belongs to one of its names; none is left over.
std::map<std::string, Weight> quantized_weights(const StoredTensors& tensors, const Pickle& pickle, PickleRef kinds);

}  // namespace fairway::interchange
