// What `fairway doctor --json` prints and runs keep as machine.json, for their report.
#pragma once

#include <nlohmann/json.hpp>

#include "base/thread_pool.h"

namespace fairway::app {

nlohmann::ordered_json machine_facts(ThreadPool& pool, double peak_seconds);  // how long to measure the peak

}  // namespace fairway::app
