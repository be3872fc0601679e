// How much of a run's calibration the rules count as training (scoring spec §3): all of it where it read training data, none
// where the model made its own text or the Hessians were gathered while training.
#pragma once

#include <nlohmann/json.hpp>

namespace fairway {

// From pack.json: seconds; all of them where it does not tell what was read.
double counted_calibration(const nlohmann::ordered_json& pack);

}  // namespace fairway
