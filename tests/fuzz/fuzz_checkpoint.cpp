// Any bytes as a checkpoint: refused, or a trainer goes on from it. The mutator changes what the file says of itself, the sizes
// or the values of its tensors, and seals the digest again, so that changes reach what stands behind it.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>

#include "backends/backends.h"
#include "base/error.h"
#include "base/rng.h"
#include "base/sha256.h"
#include "fuzz/targets.h"
#include "model/safetensors.h"
#include "train/checkpoint.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using namespace fairway;
namespace fs = std::filesystem;

const Recipe& recipe() {
  static const Recipe kRecipe =
      load_recipe("smoke", std::vector<std::string>{"model.vocab=8", "model.dim=16", "model.heads=2", "model.kv_heads=1",
                                                    "model.mlp_hidden=16", "model.rope.dims=4", "model.bigram={rows=4, dim=4}",
                                                    "model.value_embed.dim=4", "data.seq_len=4", "train.micro_batch_tokens=8",
                                                    "train.batch_tokens=16", "score={context=4, stride=4}"});
  return kRecipe;
}

struct Run {  // of one thread
  Queue queue{1};
  std::unique_ptr<Executor> executor = make_executor(Backend::ref, queue);
  Trainer trainer{recipe(), micro_batch_geometry(recipe()), *executor};
  fs::path folder;

  Run() {
    static std::atomic<int> number{0};
    folder = fs::temp_directory_path() / ("fuzz_checkpoint_" + std::to_string(::getpid()) + "_" + std::to_string(number++));
    fs::create_directories(folder);
    trainer.initialize(1, queue.pool());
  }
  ~Run() {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }
};
Run& own_run() {
  thread_local Run run;
  return run;
}

std::string saved() {
  Run& run = own_run();
  save_checkpoint(run.folder, run.trainer, {.step = 3, .loader = std::vector<std::byte>(24, std::byte{7})},
                  {.recipe = recipe_hash(recipe())}, true);
  std::ifstream file(run.folder / "latest.safetensors", std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(file), {});
  fs::remove(run.folder / "latest.safetensors");
  return bytes;
}

const Safetensors& seed() {
  static const Safetensors kSeed = Safetensors::parse(saved(), "seed");
  return kSeed;
}

std::string odd_text(Rng& rng) {
  constexpr const char* kTexts[] = {"0", "1", "-1", "", "9223372036854775807", "9223372036854775808", "1e9", "nan", "abc"};
  return kTexts[rng.below(std::size(kTexts))];
}

// The file with one thing changed and its digest made again; the digest goes over the tensors that a run holds and its
// loader's.
std::string changed(Rng& rng) {
  std::map<std::string, std::string> metadata = seed().metadata();
  std::vector<std::string> names{"params", "optimizer", "ema", "swa", "loader"};
  std::erase_if(names, [](const std::string& name) { return !seed().has(name); });
  std::vector<std::vector<std::byte>> values;
  std::vector<NamedTensor> tensors;
  const size_t which = rng.below(names.size());
  const uint64_t kind = rng.below(4);
  for (size_t i = 0; i < names.size(); ++i) {
    const Tensor tensor = seed().get(names[i]);
    values.emplace_back(tensor.data, tensor.data + tensor.spec.bytes());
    Spec spec = tensor.spec;
    if (i == which && kind == 0) spec.shape.dims[0] = static_cast<int64_t>(rng.below(64));
    if (i == which && kind == 1) values[i][rng.below(values[i].size())] = static_cast<std::byte>(rng.below(256));
    values[i].resize(spec.bytes());
    tensors.push_back({names[i], make_view(values[i].data(), spec)});
  }
  if (kind == 2) std::next(metadata.begin(), static_cast<int64_t>(rng.below(metadata.size())))->second = odd_text(rng);
  if (kind == 3) metadata.erase(std::next(metadata.begin(), static_cast<int64_t>(rng.below(metadata.size()))));
  if (metadata.contains("sha256") && rng.below(8) != 0) {
    Sha256 hash;
    for (const auto& [key, value] : metadata) {
      if (key != "sha256") hash.update((key + "=" + value + "\n").data(), key.size() + value.size() + 2);
    }
    for (const NamedTensor& tensor : tensors) hash.update(tensor.tensor.data, tensor.tensor.spec.bytes());
    metadata["sha256"] = hash.hex();
  }
  std::string file = safetensors_header(tensors, metadata);
  for (const NamedTensor& tensor : tensors)
    file.append(reinterpret_cast<const char*>(tensor.tensor.data), tensor.tensor.spec.bytes());
  return file;
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int number) {
  Rng rng(number);
  if (rng.below(4) == 0) return LLVMFuzzerMutate(data, size, max_size);
  const std::string file = changed(rng);
  const size_t used = std::min(file.size(), max_size);
  std::memcpy(data, file.data(), used);
  return used;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Run& run = own_run();
  fuzz_note.claim = size;
  const fs::path path = run.folder / "latest.safetensors";
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  try {
    fuzz_note.accepted = load_checkpoint(run.folder, run.trainer, {.recipe = recipe_hash(recipe())}).has_value();
  } catch (const InputError&) {}
  return 0;
}

std::vector<std::string> fuzz_seeds() { return {saved()}; }
