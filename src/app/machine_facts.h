// What `fairway doctor --json` prints and runs keep as machine.json, for their report.
#pragma once

#include <nlohmann/json.hpp>

#include "base/thread_pool.h"
#include "stages/machine.h"

namespace fairway::app {

nlohmann::ordered_json machine_facts(ThreadPool& pool, bool measure_anew = false);  // the peak (kept_peak.h)

double meminfo_bytes(const std::string& name);  // a line of /proc/meminfo; -1 when there is none

// Which backend of how many ranks did the work, on what: for receipts, and for the launch line of a submission.
nlohmann::ordered_json launch_facts(const Compute& compute, int ranks);

}  // namespace fairway::app
