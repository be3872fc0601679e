#include "app/named_inputs.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "analysis/published.h"
#include "artifact/artifact.h"
#include "base/error.h"
#include "base/file.h"
#include "base/nearest_word.h"
#include "data/shard.h"
#include "recipe/recipe.h"

namespace fairway::app {
namespace {

namespace fs = std::filesystem;

enum class Kind : uint8_t {
  missing,
  run,
  seeds,
  shards,
  folder,
  artifact,
  weights,
  published,
  shard,
  tokenizer,
  recipe,
  json_text,
  file
};

bool has_shards(const fs::path& folder) { return !data::list_train(folder).empty() || !data::list_validation(folder).empty(); }

Kind folder_kind(const fs::path& path) {
  if (fs::exists(path / "recipe.toml")) return Kind::run;
  if (fs::exists(path / "seeds.json") || fs::exists(path / "sweep.json")) return Kind::seeds;
  return has_shards(path) ? Kind::shards : Kind::folder;
}

// Weights begin with the length of a JSON object and the object, whatever the file is called.
bool begins_as_weights(const fs::path& path) {
  const InputFile file(path);
  unsigned char head[9] = {};
  if (file.read_at(head, sizeof head, 0) != sizeof head || head[8] != '{') return false;
  uint64_t length = 0;
  for (int i = 8; i-- > 0;) length = length << 8 | head[i];
  return length <= file.size() - 8;
}

Kind kind_at(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return Kind::missing;
  if (fs::is_directory(path, error)) return folder_kind(path);
  if (!fs::is_regular_file(path, error)) return Kind::file;
  if (is_artifact(path)) return Kind::artifact;
  const std::string name = path.filename().string(), ending = path.extension().string();
  if (ending == ".safetensors") return Kind::weights;
  if (ending == ".pt" || ending == ".pth" || ending == ".ptz") return Kind::published;
  if (ending == ".bin" && name.starts_with("fineweb_")) return Kind::shard;
  if (ending == ".model") return Kind::tokenizer;
  if (ending == ".toml") return Kind::recipe;
  if (ending == ".json" || ending == ".jsonl") return Kind::json_text;
  return begins_as_weights(path) ? Kind::weights : Kind::file;
}

const char* words_for(Kind kind) {
  switch (kind) {
    case Kind::missing: return "nothing";
    case Kind::run: return "a run folder";
    case Kind::seeds: return "a folder of several runs";
    case Kind::shards: return "a folder of shards";
    case Kind::folder: return "a folder without a run or shards";
    case Kind::artifact: return "an artifact";
    case Kind::weights: return "a weight file";
    case Kind::published: return "a file of PyTorch";
    case Kind::shard: return "a shard";
    case Kind::tokenizer: return "a tokenizer";
    case Kind::recipe: return "a recipe";
    case Kind::json_text: return "a JSON file";
    case Kind::file: break;
  }
  return "a file of another kind";
}

// What of the same subject would have been right, where it is plain.
std::string instead(const fs::path& path, Kind found, Kind wanted) {
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const auto offer = [](const fs::path& other) { return fmt::format("; did you mean {}?", other.string()); };
  if (found == Kind::missing) return nearest_path(path.string());
  if (wanted == Kind::artifact && found == Kind::run && fs::exists(path / "model.fwy")) return offer(path / "model.fwy");
  if (wanted == Kind::artifact && found == Kind::published)
    return fmt::format("; fairway import {} makes a run folder of it", path.string());
  if (wanted == Kind::recipe && found == Kind::run) return offer(path / "recipe.toml");
  if (wanted == Kind::shards && found == Kind::shard) return offer(parent);
  if (wanted == Kind::run && !fs::is_directory(path) && kind_at(parent) == Kind::run) return offer(parent);
  if (wanted == Kind::shards && fs::is_directory(path) && fs::is_directory(path / "data") && has_shards(path / "data"))
    return offer(path / "data");
  if (wanted == Kind::run && found == Kind::seeds) {
    for (const fs::directory_entry& one : fs::directory_iterator(path))
      if (kind_at(one.path()) == Kind::run) return fmt::format("; name one of its runs, for example {}", one.path().string());
  }
  return "";
}

[[noreturn]] void refuse_input(const std::string& flag, const std::string& name, Kind wanted, const std::string& expected) {
  const Kind found = kind_at(name);
  throw InputError(fmt::format("{}{}: {}; expected {}{}", flag, name,
                               found == Kind::missing ? "no such file or folder" : fmt::format("is {}", words_for(found)),
                               expected, instead(name, found, wanted)));
}

void require_kind(const std::string& flag, const std::string& name, std::initializer_list<Kind> wanted,
                  const std::string& expected) {
  if (std::find(wanted.begin(), wanted.end(), kind_at(name)) == wanted.end())
    refuse_input(flag, name, *wanted.begin(), expected);
}

}  // namespace

std::string kind_of(const std::string& path) { return words_for(kind_at(path)); }

std::string nearest_path(const std::string& path) {
  constexpr size_t kMostLooked = 4096;
  fs::path wanted = fs::path(path);
  if (!wanted.has_filename()) wanted = wanted.parent_path();
  const fs::path parent = wanted.has_parent_path() ? wanted.parent_path() : fs::path(".");
  std::error_code error;
  std::vector<std::string> names;
  for (auto entry = fs::directory_iterator(parent, error);
       !error && entry != fs::directory_iterator() && names.size() < kMostLooked; entry.increment(error))
    names.push_back(entry->path().filename().string());
  std::sort(names.begin(), names.end());
  const std::string typed = wanted.filename().string(), near = nearest_word(typed, names);
  if (near.empty() || edit_distance(typed, near) > static_cast<int>(std::max<size_t>(1, typed.size() / 3))) return "";
  return fmt::format("; did you mean {}?", (wanted.has_parent_path() ? parent / near : fs::path(near)).string());
}

void require_model(const std::string& name) {
  const Kind found = kind_at(name);
  if (found == Kind::seeds) refuse_input("", name, Kind::run, "one run, an artifact (.fwy) or a weight file (.safetensors)");
  if (found != Kind::run && found != Kind::artifact && found != Kind::weights)
    refuse_input("", name, Kind::artifact, "a run folder, an artifact (.fwy) or a weight file (.safetensors)");
}

void require_artifact(const std::string& name) { require_kind("", name, {Kind::artifact}, "an artifact (.fwy)"); }

void require_checkpoint(const std::string& name) {
  const Kind found = kind_at(name);
  if (found == Kind::artifact || found == Kind::published || found == Kind::weights || found == Kind::file) return;
  refuse_input("", name, Kind::published,
               "a checkpoint of PyTorch (.pt), a published artifact (.ptz) or a weight file (.safetensors)");
}

std::string artifact_in(const std::string& name) {
  const fs::path inside = fs::path(name) / "model.fwy";
  const std::string path = fs::exists(inside) ? inside.string() : name;
  require_kind("", path, {Kind::artifact}, "an artifact, or a run folder with its model.fwy (fairway pack makes one)");
  return path;
}

void require_run(const std::string& name) { require_kind("", name, {Kind::run}, "a run folder"); }

void require_data(const std::string& folder, const std::string& flag) {
  const Kind found = kind_at(folder);
  if (found == Kind::shards || found == Kind::folder) return;  // which shards are missing is told by who reads them
  if (found == Kind::run && has_shards(folder)) return;
  refuse_input(flag, folder, Kind::shards, "a folder of shards (fineweb_train_*.bin, fineweb_val_*.bin)");
}

void require_scores(const std::string& name) {
  if (find_published(name) != nullptr || fs::is_regular_file(fs::path(name) / "score.json")) return;
  require_kind("", name, {Kind::run, Kind::seeds, Kind::json_text},
               "a run folder, a folder of several runs, a score.json, or a published system");
}

void require_recipe(const std::string& name) {
  for (const BuiltinRecipe& builtin : builtin_recipes())
    if (builtin.name == name) return;
  const Kind found = kind_at(name);
  if (found == Kind::recipe || found == Kind::file || found == Kind::json_text) return;  // its text decides
  if (found == Kind::missing) {
    const std::string near = nearest_path(name);
    if (near.empty()) return;  // the recipe's reader names the nearest built-in one
    throw InputError(fmt::format("recipe {}: neither a file nor a built-in recipe{}", name, near));
  }
  refuse_input("recipe ", name, Kind::recipe, "a built-in recipe or a TOML file");
}

}  // namespace fairway::app
