// What a run remembers, for commands that are not told again: where its data and tokenizer are, how it was launched, and which
// weights it began with.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "model/param_store.h"
#include "report/run_origin.h"
#include "stages/requests.h"

namespace fairway::app {

// The run's folder of what the command line names: the folder itself, or the one a file lies in.
std::filesystem::path run_folder_of(const std::filesystem::path& run_or_file);

// The data folder of a run, or of an artifact in a run's folder: where it was, then seen from where the run lies now, then
// RUN/data, then beside the run. Nothing when none of them holds shards.
std::optional<std::filesystem::path> remembered_data(const std::filesystem::path& run_or_file);
// The same for a command that needs it; `given` is --data, which comes first. InputError says where it looked.
std::string data_for(const std::string& run_or_file, const std::string& given);
// The file that takes the place of the data's tokenizer.model: `given` (--tokenizer) or the one that the run was told; empty
// when neither is.
std::string named_tokenizer(const std::string& run_or_file, const std::string& given);
// The same, or tokenizer.model of the data, or beside the run or its data; `given` is --tokenizer. InputError says where it
// looked.
std::filesystem::path tokenizer_for(const std::string& run_or_file, const std::string& given);

// An artifact does not hold how its recipe scores. One that lies in its run's folder is scored as the recipe there says, as far
// as `request` leaves it open. Others stay as they are: folders, artifacts of another model.
void remember_scoring(ScoreRequest& request);

// Weights that a run is to begin with: those a finished run ended with, an artifact's or weight file's, or of an unfinished run
// its newest checkpoint's. A run that goes on before its first checkpoint begins once more with those it began with. Nothing
// for a run that begins with its seed's. InputError when they are of another model or tokenizer, or not those of the run.
struct ForkedWeights {
  std::shared_ptr<ParamStore> params;
  RunFork fork;
};
std::optional<ForkedWeights> fork_of(const TrainRequest& request);

// origin.json of a run that this command begins or continues.
RunOrigin origin_of(const TrainRequest& request, const std::optional<RunFork>& fork);

}  // namespace fairway::app
