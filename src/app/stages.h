// The stages of a run as commands of their own do them: the work, then its result as fields and as text. On ranks other than
// the first a result is empty.
#pragma once

#include "app/command.h"
#include "comm/communicator.h"
#include "pipeline/stages.h"

namespace fairway::app {

pipeline::Outcome do_train(const TrainRequest& request, const Compute& compute, Communicator& comm);
pipeline::Outcome do_pack(const PackRequest& request, const Compute& compute, Communicator& comm);
// score.json, receipt.json and score.records go to the folder `keep`, where one is named; refused beforehand when it would take
// longer than `most_seconds`, where they are not 0.
pipeline::Outcome do_score(const ScoreRequest& request, const std::string& keep, double most_seconds, const Compute& compute,
                           Communicator& comm);
pipeline::Outcome do_audit(const pipeline::AuditRequest& request, const Compute& compute);
pipeline::Outcome do_samples(const pipeline::SamplesRequest& request, const Compute& compute);
pipeline::Outcome do_report(const std::vector<std::filesystem::path>& folders, const std::filesystem::path& out);

}  // namespace fairway::app
