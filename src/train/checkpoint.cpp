#include "train/checkpoint.h"

#include <fmt/core.h>

#include <charconv>
#include <cstring>

#include "base/disk.h"
#include "base/error.h"
#include "base/file.h"
#include "base/identity.h"
#include "base/output.h"
#include "base/sha256.h"
#include "model/safetensors.h"

namespace fairway {
namespace {

namespace fs = std::filesystem;

const std::string kUnwritten = "unwritten ";  // and the file that did not take these lines

std::vector<NamedTensor> state_tensors(Trainer& trainer) {
  std::vector<NamedTensor> out{{"params", trainer.params().flat_values()}, {"optimizer", trainer.optimizer().flat_state()}};
  if (trainer.averager().ema()) out.push_back({"ema", trainer.averager().ema()});
  if (trainer.averager().swa()) out.push_back({"swa", trainer.averager().swa()});
  return out;
}

std::string digest(const std::vector<NamedTensor>& tensors, const std::map<std::string, std::string>& metadata) {
  Sha256 hash;
  for (const auto& [key, value] : metadata) {
    if (key != "sha256") hash.update((key + "=" + value + "\n").data(), key.size() + value.size() + 2);
  }
  for (const NamedTensor& entry : tensors) hash.update(entry.tensor.data, entry.tensor.spec.bytes());
  return hash.hex();
}

int64_t whole(const Safetensors& file, const std::string& key) {
  const auto found = file.metadata().find(key);
  int64_t value = 0;
  if (found == file.metadata().end()) throw InputError(file.name() + ": not a checkpoint: metadata has no " + key);
  const std::string& text = found->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0)
    throw InputError(file.name() + ": metadata " + key + " = " + text + " is not a count");
  return value;
}

void require_same_run(const Safetensors& file, const RunIdentity& run) {
  const auto told = [&](const char* key) {
    const auto found = file.metadata().find(key);
    return found == file.metadata().end() ? std::string() : found->second;
  };
  Identities made{.by = file.name()}, have{.by = "the run"};
  made.tell(IdentityKind::recipe, {told("recipe"), told("recipe_but_length")});
  have.tell(IdentityKind::recipe, {run.recipe, run.but_length});
  if (!made.tells(IdentityKind::recipe) || !differences(have, made).empty())
    throw InputError(file.name() + ": belongs to a different recipe; resume with the same recipe and overrides");
  require_same(tokenizer_identity({run.tokenizer}, run.told_by), tokenizer_identity({told("tokenizer")}, file.name()),
               "resume with the same data");
}

RunState load_file(const fs::path& path, Trainer& trainer, const RunIdentity& run) {
  const Safetensors file = Safetensors::read(path);
  RunState state{.step = whole(file, "step"),
                 .stage = {whole(file, "looped") != 0, whole(file, "fake_quant") != 0},
                 .snapshots = whole(file, "snapshots")};
  const auto seconds = [&](const char* key) {
    return file.metadata().contains(key) ? static_cast<double>(whole(file, key)) * 1e-6 : 0;
  };
  state.elapsed = seconds("elapsed_us");
  state.next_step = seconds("next_step_us");
  for (const auto& [key, lines] : file.metadata())
    if (key.starts_with(kUnwritten)) state.unwritten[key.substr(kUnwritten.size())] = lines;
  require_same_run(file, run);
  const std::vector<NamedTensor> wanted = state_tensors(trainer);
  for (const NamedTensor& want : wanted) {
    if (file.get(want.name).spec != want.tensor.spec)
      throw InputError(path.string() + ": tensor '" + want.name + "' differs in size from the model's");
  }
  const Tensor loader = file.get("loader");
  if (loader.spec.dtype != DType::u8) throw InputError(path.string() + ": tensor 'loader' is not u8");
  require_whole(file);
  for (const NamedTensor& want : wanted) std::memcpy(want.tensor.data, file.get(want.name).data, want.tensor.spec.bytes());
  state.loader.assign(loader.data, loader.data + loader.numel());
  trainer.averager().restore_snapshots(state.snapshots);
  return state;
}

void promote_next(const fs::path& folder) {
  const fs::path latest = folder / "latest.safetensors";
  if (fs::exists(latest)) move_file(latest, folder / "previous.safetensors");
  move_file(folder / "next.safetensors", latest);
}

}  // namespace

void require_whole(const Safetensors& checkpoint) {
  std::vector<NamedTensor> stored;
  for (const char* name : {"params", "optimizer", "ema", "swa", "loader"})  // as they are written
    if (checkpoint.has(name)) stored.push_back({name, checkpoint.get(name)});
  const auto sum = checkpoint.metadata().find("sha256");
  if (sum == checkpoint.metadata().end() || sum->second != digest(stored, checkpoint.metadata()))
    throw InputError(checkpoint.name() + ": checksum does not match; the file is damaged");
}

size_t checkpoint_bytes(Trainer& trainer) {
  size_t bytes = 4096;
  for (const NamedTensor& entry : state_tensors(trainer)) bytes += entry.tensor.spec.bytes();
  return bytes;
}

void save_checkpoint(const fs::path& folder, Trainer& trainer, const RunState& state, const RunIdentity& run, bool keep_clock) {
  if (const std::error_code error = disk::make_folders(folder))
    throw WorkError(fmt::format("{}: cannot be created: {}", folder.string(), error.message()));
  std::vector<NamedTensor> tensors = state_tensors(trainer);
  auto* loader = const_cast<std::byte*>(state.loader.data());
  tensors.push_back({"loader", make_view(loader, {{static_cast<int64_t>(state.loader.size())}, DType::u8})});
  std::map<std::string, std::string> metadata{{"step", std::to_string(state.step)},
                                              {"looped", state.stage.looped ? "1" : "0"},
                                              {"fake_quant", state.stage.fake_quant ? "1" : "0"},
                                              {"snapshots", std::to_string(state.snapshots)},
                                              {"recipe", run.recipe},
                                              {"recipe_but_length", run.but_length}};
  if (!run.tokenizer.empty()) metadata["tokenizer"] = run.tokenizer;
  const auto keep_seconds = [&](const char* key, double seconds) {
    if (keep_clock) metadata[key] = std::to_string(static_cast<int64_t>(seconds * 1e6));
  };
  keep_seconds("elapsed_us", state.elapsed);
  keep_seconds("next_step_us", state.next_step);
  for (const auto& [name, lines] : state.unwritten) metadata[kUnwritten + name] = lines;
  metadata["sha256"] = digest(tensors, metadata);
  save_safetensors(folder / "next.safetensors", tensors, metadata);
  promote_next(folder);
}

std::optional<RunState> load_checkpoint(const fs::path& folder, Trainer& trainer, const RunIdentity& run) {
  // `next` is whole once it has that name: only the renames after it were missed.
  std::string problems;
  std::vector<fs::path> damaged;
  for (const char* name : {"next.safetensors", "latest.safetensors", "previous.safetensors"}) {
    const fs::path path = folder / name;
    if (!fs::exists(path)) continue;
    try {
      RunState state = load_file(path, trainer, run);
      if (!problems.empty()) print_err(fmt::format("{}; continuing from {}\n", problems, path.string()));
      // Set aside, so that the next save does not put a damaged file in the place of the good one.
      for (const fs::path& file : damaged) move_file(file, file.string() + ".damaged");
      if (path.filename() == "next.safetensors") promote_next(folder);
      return state;
    } catch (const InputError& error) {
      damaged.push_back(path);
      problems += (problems.empty() ? "" : "; ") + std::string(error.what());
    }
  }
  if (!problems.empty()) throw InputError(problems);
  return std::nullopt;
}

}  // namespace fairway
