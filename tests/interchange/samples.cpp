#include "interchange/samples.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <sstream>

#include "backends/backends.h"
#include "base/file.h"
#include "golden/case_file.h"
#include "golden/golden.h"
#include "interchange/decompress.h"
#include "interchange/fit.h"

namespace fairway::interchange {

std::string sample_path(const std::string& name) { return std::string(FAIRWAY_SOURCE_DIR) + "/tests/interchange/" + name; }
std::string sample_bytes(const std::string& name) { return read_file(sample_path(name)); }
std::string read_weight_bytes(const std::string& name) {
  const std::string bytes = sample_bytes(name);
  if (bytes.starts_with("PK")) return bytes;
  return bytes[0] == '\xFD' ? decompress_xz(bytes, 1 << 24, name) : decompress_brotli(bytes, 1 << 24, name);
}
WeightSet sample_set(const std::string& name) { return read_weight_set(sample_bytes(name), name); }

Safetensors golden_file(const std::string& name) {
  return Safetensors::read(std::string(FAIRWAY_SOURCE_DIR) + "/tests/golden/" + name + ".safetensors");
}

Recipe golden_recipe(const std::string& golden) {
  const Safetensors file = golden_file(golden);
  golden::Metadata meta(file);
  const Tensor tokens = file.get("tokens");
  return golden::recipe_of(file, meta, "param.", {tokens.dim(0), tokens.dim(1)});
}

std::string golden_recipe_file(const std::string& golden, const std::filesystem::path& folder) {
  const std::string path = (folder / (golden + ".toml")).string();
  write_file_atomic(path, to_toml(golden_recipe(golden)));
  return path;
}

std::string golden_of(const std::string& sample) {
  if (sample.starts_with("pr1105")) return "pr1105_tiny";
  return sample.starts_with("pr1584") ? "pr1584_tiny_plain" : "best_tiny_plain";
}

double loss_with(const WeightSet& set, const std::string& golden, bool round_tables) {
  const Safetensors file = golden_file(golden);
  const Loaded loaded = load(set, golden_recipe(golden), round_tables);
  for (const ParamBank& bank : loaded.params->banks())
    std::memcpy(file.get("param." + bank.info.name).data, bank.value.data, bank.value.spec.bytes());
  Queue queue(1);
  return golden::run_case(file, *make_ref_executor(queue)).loss;
}

bool lrzip_is_installed() {
  std::istringstream folders(std::getenv("PATH") == nullptr ? "" : std::getenv("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');)
    if (access((folder + "/lrzip").c_str(), X_OK) == 0) return true;
  return false;
}

}  // namespace fairway::interchange
