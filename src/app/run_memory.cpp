#include "app/run_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/named_inputs.h"
#include "artifact/artifact.h"
#include "base/error.h"
#include "base/file.h"
#include "data/folder_tokenizer.h"
#include "data/shard.h"
#include "stages/tokenizer_check.h"
#include "train/checkpoint.h"
#include "train/run_folder.h"

namespace fairway::app {
namespace {

namespace fs = std::filesystem;

bool holds_shards(const fs::path& folder) {
  return fs::is_directory(folder) && (!data::list_train(folder).empty() || !data::list_validation(folder).empty());
}

// Where a run's data may be, likeliest first, each once.
std::vector<fs::path> places_of_data(const fs::path& run) {
  std::vector<fs::path> places;
  const auto add = [&](const fs::path& place) {
    const fs::path normal = fs::absolute(place).lexically_normal();
    if (std::find(places.begin(), places.end(), normal) == places.end()) places.push_back(normal);
  };
  const std::optional<RunOrigin> origin = read_origin(run);
  if (origin) {
    add(origin->data);
    add(run / origin->relative);
  }
  add(run / "data");
  if (origin) add(fs::absolute(run).lexically_normal().parent_path() / fs::path(origin->data).filename());
  return places;
}

std::string listed(const std::vector<fs::path>& places) {
  std::vector<std::string> names;
  for (const fs::path& place : places) names.push_back(place.string());
  return fmt::format("{}", fmt::join(names, ", "));
}

// The arguments this program was started with.
nlohmann::ordered_json own_launch() {
  nlohmann::ordered_json words = nlohmann::ordered_json::array();
  InputFile file("/proc/self/cmdline");
  std::string text(size_t{1} << 20, '\0');
  text.resize(file.read_some(text.data(), text.size()));
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\0', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return {{"command", words}, {"in", fs::current_path().string()}};
}

bool same_layout(const std::vector<ParamInfo>& a, const std::vector<ParamInfo>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const ParamInfo& x, const ParamInfo& y) { return x.name == y.name && x.shape == y.shape; });
}

// Of an unfinished run.
ForkedWeights from_checkpoint(const fs::path& run, const Recipe& recipe, Identities& claim) {
  const fs::path path = run / "checkpoint" / "latest.safetensors";
  std::string bytes = read_file(path, kMostSafetensorsBytes);
  const FileIdentity identity = identity_of(path, bytes);
  const Safetensors file = Safetensors::parse(std::move(bytes), path.string());
  require_whole(file);
  auto params = std::make_shared<ParamStore>(parameter_table(recipe), ParamStore::Gradients::none);
  const Recipe stored = load_recipe((run / "recipe.toml").string());
  const Tensor values = file.get("params");
  if (!same_layout(parameter_table(stored), params->table()) || values.spec != params->flat_values().spec)
    throw InputError(
        fmt::format("--from {}: {} is the checkpoint of another model than this recipe's", run.string(), path.string()));
  params->set_values(values);
  claim.by = path.string();
  if (const auto told = file.metadata().find("tokenizer"); told != file.metadata().end())
    claim.tell(IdentityKind::tokenizer, {told->second});
  return {std::move(params), {.path = fs::absolute(path).lexically_normal().string(), .sha256 = identity.sha256}};
}

ForkedWeights from_weights(const std::string& from, const Recipe& recipe, Identities& claim) {
  ModelWeights weights;
  FileIdentity file;
  if (fs::is_regular_file(from) && is_artifact(from)) {
    WeightSource source = open_weights(from, "", {});
    if (!same_layout(source.weights.params->table(), parameter_table(recipe)))
      throw InputError("--from " + from + ": the artifact is of another model than this recipe's");
    weights = std::move(source.weights);
    file = source.file;
  } else {
    const fs::path path = fs::is_directory(from) ? fs::path(from) / "averaged.safetensors" : fs::path(from);
    if (!fs::exists(path))
      throw InputError("--from " + from + ": is no run; it has neither averaged.safetensors nor a checkpoint");
    std::string bytes = read_file(path, kMostSafetensorsBytes);
    file = identity_of(path, bytes);
    weights = stored_weights(Safetensors::parse(std::move(bytes), path.string()), recipe);
  }
  claim = tokenizer_identity({weights.tokenizer}, file.path.string());
  return {weights.params, {.path = fs::absolute(file.path).lexically_normal().string(), .sha256 = file.sha256}};
}

}  // namespace

fs::path run_folder_of(const fs::path& run_or_file) {
  if (fs::is_directory(run_or_file)) return run_or_file;
  return run_or_file.has_parent_path() ? run_or_file.parent_path() : fs::path(".");
}

std::optional<fs::path> remembered_data(const fs::path& run_or_file) {
  for (const fs::path& place : places_of_data(run_folder_of(run_or_file)))
    if (holds_shards(place)) return place;
  return std::nullopt;
}

std::string data_for(const std::string& run_or_file, const std::string& given) {
  if (!given.empty()) {
    require_data(given);
    return given;
  }
  if (const auto found = remembered_data(run_or_file)) return found->string();
  throw InputError(fmt::format("--data: not given, and the data of {} was not found; looked in {}", run_or_file,
                               listed(places_of_data(run_folder_of(run_or_file)))));
}

std::string named_tokenizer(const std::string& run_or_file, const std::string& given) {
  if (!given.empty()) return given;
  const std::optional<RunOrigin> origin = read_origin(run_folder_of(run_or_file));
  return origin && fs::is_regular_file(origin->tokenizer) ? origin->tokenizer : "";
}

void remember_scoring(ScoreRequest& request) {
  const fs::path stored = run_folder_of(request.from) / "recipe.toml";
  if (!fs::is_regular_file(request.from) || !is_artifact(request.from) || !fs::is_regular_file(stored)) return;
  const std::string bytes = read_file(request.from, kMostArtifactFileBytes);
  const Recipe recipe = load_recipe(stored.string());
  if (ArtifactReader(bytes, request.from).model().model != recipe.model) return;
  ScoreRequest usual = score_request(recipe, request.from, request.data);
  if (!request.mode) request.mode = usual.mode;
  if (request.context == 0) request.context = usual.context;
  if (request.stride == 0 && usual.stride <= request.context) request.stride = usual.stride;
  usual.overrides.insert(usual.overrides.end(), request.overrides.begin(), request.overrides.end());
  request.overrides = std::move(usual.overrides);
}

fs::path tokenizer_for(const std::string& run_or_file, const std::string& given) {
  if (!given.empty()) {
    if (!fs::exists(given))
      throw InputError(
          fmt::format("--tokenizer {}: no such file; expected a SentencePiece model{}", given, nearest_path(given)));
    return given;
  }
  if (const std::string named = named_tokenizer(run_or_file, ""); !named.empty()) return named;
  const fs::path run = run_folder_of(run_or_file);
  std::vector<fs::path> places{run};
  for (const fs::path& place : places_of_data(run)) places.push_back(place);
  for (const fs::path& place : places_of_data(run)) places.push_back(place.parent_path());  // beside the shards
  for (const fs::path& place : places)
    if (fs::is_regular_file(place / "tokenizer.model")) return place / "tokenizer.model";
  throw InputError(
      fmt::format("{}: no tokenizer.model found; looked in {}; name it with --tokenizer, or pack with "
                  "--with-tokenizer, so that the artifact carries it",
                  run_or_file, listed(places)));
}

namespace {

ForkedWeights open_fork(const std::string& from, const TrainRequest& request) {
  const Recipe& recipe = request.recipe;
  require_model(from);
  const bool unfinished = fs::is_directory(from) && !fs::exists(fs::path(from) / "averaged.safetensors") &&
                          fs::exists(fs::path(from) / "checkpoint" / "latest.safetensors");
  Identities claim;
  ForkedWeights out = unfinished ? from_checkpoint(from, recipe, claim) : from_weights(from, recipe, claim);
  data::FolderTokenizer beside = data::open_tokenizer(request.data, request.tokenizer);
  require_tokenizer(claim, beside);
  out.fork.train_seconds = trained_seconds(run_folder_of(from));
  return out;
}

}  // namespace

std::optional<ForkedWeights> fork_of(const TrainRequest& request) {
  const std::optional<RunOrigin> before = request.resume ? read_origin(request.out) : std::nullopt;
  const bool forked = before && before->from;
  if (request.from.empty() && !forked) return std::nullopt;
  ForkedWeights fork = open_fork(request.from.empty() ? before->from->path : request.from, request);
  if (!before || !holds_run(request.out)) return fork;
  const auto weights = [](const std::string& hash) { return Identities{}.tell(IdentityKind::artifact, {hash}); };
  if (!forked || !differences(weights(before->from->sha256), weights(fork.fork.sha256)).empty())
    throw InputError(fmt::format("--from {}: the run in {} began with {}; resume it without --from, or choose another folder",
                                 request.from, request.out.string(),
                                 forked ? "the weights of " + before->from->path : "weights of its seed"));
  fork.fork = *before->from;
  return fork;
}

RunOrigin origin_of(const TrainRequest& request, const std::optional<RunFork>& fork) {
  const fs::path data = fs::absolute(request.data).lexically_normal(), out = fs::absolute(request.out).lexically_normal();
  RunOrigin origin{.data = data.string(), .relative = data.lexically_relative(out).string(), .from = fork};
  if (!request.tokenizer.empty()) origin.tokenizer = fs::absolute(request.tokenizer).lexically_normal().string();
  if (request.resume && fs::is_directory(request.out)) {
    if (const std::optional<RunOrigin> before = read_origin(request.out)) origin.launches = before->launches;
  }
  origin.launches.push_back(own_launch());
  return origin;
}

}  // namespace fairway::app
