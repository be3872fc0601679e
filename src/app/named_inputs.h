// What the command line names, looked at before any work: a path that is not there gets the nearest one that is, and a file of
// the wrong kind a sentence that says what it is and what was expected. All throw InputError.
#pragma once

#include <string>

namespace fairway::app {

// A run folder, an artifact or a weight file.
void require_model(const std::string& name);
void require_artifact(const std::string& name);
std::string artifact_in(const std::string& name);  // the name itself, or the model.fwy of a run folder
void require_checkpoint(const std::string& name);  // what `import` takes, as far as names and first bytes tell
void require_run(const std::string& name);         // a folder with recipe.toml
// A folder with shards; `flag` is what named it.
void require_data(const std::string& folder, const std::string& flag = "--data ");
// Runs, a folder of several, a score file or the folder that `score` wrote it to, or a published system.
void require_scores(const std::string& name);
void require_recipe(const std::string& name);  // a built-in recipe or a TOML file

// What a path is, for a sentence: "an artifact", "a folder of shards".
std::string kind_of(const std::string& path);
// "; did you mean runs/a?" for a path that is not there, by the names beside it; empty when none is near.
std::string nearest_path(const std::string& path);

}  // namespace fairway::app
