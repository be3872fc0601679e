#include "report/counted_calibration.h"

#include "recipe/score_recipe.h"

namespace fairway {

double counted_calibration(const nlohmann::ordered_json& pack) {
  if (!pack.is_object()) return 0;
  if (const auto read = pack.find("calibration"); read != pack.end() && *read != name_of(Calibration::train)) return 0;
  const auto seconds = pack.find("seconds");
  if (seconds == pack.end() || !seconds->is_object()) return 0;
  const auto calibrate = seconds->find("calibrate");
  return calibrate != seconds->end() && calibrate->is_number() ? calibrate->get<double>() : 0;
}

}  // namespace fairway
