#include "app/quantizing_flags.h"

#include <algorithm>

namespace fairway::app {

void add_quantizing_flags(CLI::App& command, const std::shared_ptr<QuantizeRequest>& request) {
  command.add_option("RUN", request->from, "a run folder, or a .safetensors file with --recipe")->required();
  command.add_option("--recipe", request->recipe, "recipe of a weight file that has no run folder");
  const auto& sources = EnumNames<Calibration>::names;
  command
      .add_option_function<std::string>(
          "--calibration",
          [request, &sources](const std::string& name) {
            request->calibration = static_cast<Calibration>(std::find(sources.begin(), sources.end(), name) - sources.begin());
          },
          "self, train or online (default: the recipe's)")
      ->check(CLI::IsMember({"self", "train", "online"}));
  command.add_option("--data", request->data, "folder of shards for --calibration train (default: where the run had them)");
  command
      .add_option("--tokens", request->tokens,
                  "tokens for --calibration self (default: 131072 on a device or as published, 65536 on the CPU)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  command.add_option("--set", request->overrides, "key=value, replaces a key of the recipe")->take_all();
}

}  // namespace fairway::app
