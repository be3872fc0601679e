// T10: evaluators that break one rule each. The audit has power only if it catches all of them (scoring spec §3.2).
#pragma once

#include <string>

#include "audit/audit.h"
#include "audit/checks.h"

namespace fairway {

struct ControlCase {
  std::string name;
  ScoreMode mode = ScoreMode::sliding;
  NegativeControl control = NegativeControl::none;
  std::string test;     // the one that must catch it
  int64_t windows = 8;  // that overlap, after the first: a leak shows in any of them
};
std::vector<ControlCase> control_cases();

// What a control runs on: a few windows of the slice; for controls that depend on the order of documents, text that has
// several. `note` says where that is, or that the text was changed to have them.
struct ControlText {
  std::vector<uint16_t> stream;
  std::string note;
};
ControlText control_text(const AuditInput& input, const ControlCase& control);

// Settings under which the control leaks, whatever is audited: windows overlap, as they do not where the stride is the context.
ScoreSettings control_settings(const AuditInput& input, const ControlCase& control);

// What the named test finds wrong with the control; nothing when the control slips through.
Finding catch_control(const AuditInput& input, const ControlCase& control);

struct ControlReport {
  std::string caught;  // "slot-published by T2, …"
  std::string missed;  // empty when all were caught
};
ControlReport run_negative_controls(const AuditInput& input, const AuditProgress& progress);

}  // namespace fairway
