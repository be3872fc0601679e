// `fairway export` and `unpack`: weights under the interchange names or those of the published scripts.
#include "stages/weights.h"

#include <fmt/core.h>

#include "app/command.h"
#include "app/named_inputs.h"
#include "base/error.h"
#include "base/file.h"
#include "base/writer_lock.h"
#include "interchange/export_weights.h"

namespace fairway::app {
namespace {

namespace fs = std::filesystem;
using interchange::NameStyle;

constexpr const char* kTorchEnding = ".pt";

struct ExportRequest {
  std::string from, recipe, out;
  NameStyle names = NameStyle::fairway;
};

std::map<std::string, std::string> metadata_of(const WeightSource& source) {
  const ModelWeights& weights = source.weights;
  std::map<std::string, std::string> metadata = weights.metadata;
  if (source.packed) {
    metadata["looped"] = weights.looped ? "1" : "0";
    if (!weights.recipe_hash.empty()) metadata["recipe_hash"] = weights.recipe_hash;
    if (!weights.tokenizer.empty()) metadata["tokenizer"] = weights.tokenizer;
  }
  return metadata;
}

int export_weights(const CommonFlags& flags, const ExportRequest& request) {
  const std::string& out = request.out;
  require_model(request.from);
  require_place_for_file(out);
  const WriterLock lock = WriterLock::of_file(out);
  const WeightSource source = open_weights(request.from, request.recipe, {});
  const std::vector<NamedTensor> tensors =
      interchange::named_tensors(*source.weights.params, source.recipe.model.layers, request.names);
  if (out.ends_with(kTorchEnding)) {
    write_file_atomic(out, interchange::torch_file_of(tensors, out));
  } else {
    save_safetensors(out, tensors, metadata_of(source));
  }
  print_result(flags, {{"path", out}, {"tensors", tensors.size()}}, fmt::format("{} tensors to {}\n", tensors.size(), out));
  return 0;
}

// `unpack` is `export` of an artifact and nothing else.
int unpack(const CommonFlags& flags, const std::string& file, const std::string& out) {
  require_artifact(file);
  return export_weights(flags, {.from = file, .recipe = "", .out = out});
}

}  // namespace

void add_weights(CLI::App& program) {
  auto request = std::make_shared<ExportRequest>();
  CLI::App* exporter = add_command(program, "export", "write a run's weights for other programs",
                                   [=](const CommonFlags& flags) { return export_weights(flags, *request); });
  exporter->add_option("RUN", request->from, "a run folder, an artifact or a .safetensors file")->required();
  exporter->add_option("--recipe", request->recipe, "recipe of a weight file that has no run folder");
  exporter
      ->add_option_function<std::string>(
          "--names",
          [=](const std::string& name) { request->names = name == "fairway" ? NameStyle::fairway : NameStyle::published; },
          "fairway (default) or published: those of the PyTorch scripts, with banks")
      ->check(CLI::IsMember({"fairway", "published"}));
  exporter->add_option("--out", request->out, "the file to write: .safetensors, or .pt for torch.load")->required();
  struct Flags {
    std::string from, out;
  };
  auto artifact = std::make_shared<Flags>();
  CLI::App* unpacker = add_command(program, "unpack", "write an artifact's weights under the interchange names",
                                   [=](const CommonFlags& flags) { return unpack(flags, artifact->from, artifact->out); });
  unpacker->add_option("FILE", artifact->from, "an artifact (.fwy)")->required();
  unpacker->add_option("--out", artifact->out, "the .safetensors file to write")->required();
}

}  // namespace fairway::app
