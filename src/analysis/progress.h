// Told as an analysis goes on: how much is done, out of how much.
#pragma once

#include <cstdint>
#include <functional>

namespace fairway {

using AnalysisProgress = std::function<void(int64_t done, int64_t total)>;

}  // namespace fairway
