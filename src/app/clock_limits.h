// The limits of clocks on this machine: the kernel's files for the processor, NVIDIA's management library for cards.
#pragma once

#include "app/machine_problems.h"

namespace fairway::app {

ClockLimits processor_limits();
std::vector<CardLimits> card_limits();  // empty where libnvidia-ml.so.1, which the driver brings, is absent

bool library_found(const char* name);  // by the system's loader

}  // namespace fairway::app
