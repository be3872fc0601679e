// What a run's machine.json tells of its device.
#pragma once

#include <nlohmann/json.hpp>

namespace fairway {

// cuda.path names the kernels that the device ran; older files have a boolean.
inline bool has_device(const nlohmann::ordered_json& machine) {
  if (!machine.is_object() || !machine.contains("cuda")) return false;
  const nlohmann::ordered_json& cuda = machine["cuda"];
  return cuda == true || (cuda.is_object() && cuda.contains("path") && cuda["path"].is_string());
}

}  // namespace fairway
