#include "app/isolated.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#include "artifact/artifact.h"
#include "audit/audit.h"
#include "audit/isolation.h"
#include "base/error.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/sha256.h"

namespace fairway::app {
namespace {

using nlohmann::json;

constexpr const char* kIsolatedCommand = "score-alone";

template <class T>
json bytes_of(std::span<const T> values) {
  const auto* begin = reinterpret_cast<const uint8_t*>(values.data());
  return json::binary({begin, begin + values.size_bytes()});
}

template <class T>
std::vector<T> values_of(const json& bytes) {
  const json::binary_t& from = bytes.get_binary();
  std::vector<T> out(from.size() / sizeof(T));
  std::memcpy(out.data(), from.data(), out.size() * sizeof(T));
  return out;
}

std::vector<uint16_t> made_up_stream(size_t length, int64_t vocab) {
  Rng rng(1);
  std::vector<uint16_t> stream(length);
  for (uint16_t& token : stream) token = static_cast<uint16_t>(rng.below(static_cast<uint64_t>(vocab)));
  return stream;
}

// What must be out of reach once opening is forbidden; that it is, is tried.
void require_out_of_reach(const json& paths) {
  for (const json& path : paths) {
    const int fd = open(path.get<std::string>().c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    close(fd);
    throw WorkError("it could still open " + path.get<std::string>());
  }
}

// Libraries, the device's context and its graphs come into being while made-up tokens are scored; then opening is forbidden.
std::string score_alone(const std::string& input) {
  const json given = json::from_cbor(input);
  const std::string name = "the weights of the isolated run";
  const std::vector<uint8_t> weights = values_of<uint8_t>(given.at("weights"));
  std::string bytes(weights.begin(), weights.end());
  const Recipe recipe = parse_recipe(given.at("recipe").get<std::string>(), "the recipe of the isolated run");
  const ModelWeights stored = given.at("packed").get<bool>()
                                  ? dequantized(read_artifact(bytes, name), recipe)
                                  : stored_weights(Safetensors::parse(std::move(bytes), name), recipe);
  const ScoredModel model{
      recipe,
      {.looped = stored.looped},
      [&](ParamStore& params) { params.set_values(stored.params->flat_values()); },
      {values_of<uint16_t>(given.at("base")), values_of<uint8_t>(given.at("lead")), values_of<uint8_t>(given.at("bound"))}};
  const ScoreSettings settings{.score = recipe.score, .schedule_targets = given.at("schedule_targets")};
  Machine machine({.backend = given.at("backend"), .threads = given.at("threads")});
  const auto evaluator = make_evaluator(model, settings, {machine.executor.get(), &machine.queue.pool()});
  const std::vector<uint16_t> stream = values_of<uint16_t>(given.at("stream")),
                              made_up = made_up_stream(stream.size(), recipe.model.vocab);
  ScoreLedger warm = make_ledger(made_up, settings), ledger = make_ledger(stream, settings);
  evaluator->run(warm, {});
  forbid_opening();
  require_out_of_reach(given.at("out_of_reach"));
  evaluator->run(ledger, {});
  return records_hash(ledger);
}

}  // namespace

std::string records_alone(const Compute& compute, const Scoring& scoring, const ScoreSettings& settings,
                          std::span<const uint16_t> stream, const std::filesystem::path& data) {
  Recipe recipe = scoring.source.recipe;
  recipe.score = settings.score;
  const std::string weights = read_file(scoring.source.file.path);
  if (sha256_hex(weights) != scoring.source.file.sha256)
    throw WorkError(scoring.source.file.path.string() + " has changed since it was read");
  const ByteTables& bytes = scoring.held_out.bytes;
  const json given{{"recipe", to_toml(recipe)},
                   {"packed", scoring.source.packed},
                   {"weights", bytes_of(std::span<const char>(weights))},
                   {"base", bytes_of(std::span<const uint16_t>(bytes.base))},
                   {"lead", bytes_of(std::span<const uint8_t>(bytes.lead))},
                   {"bound", bytes_of(std::span<const uint8_t>(bytes.bound))},
                   {"stream", bytes_of(stream)},
                   {"schedule_targets", settings.schedule_targets},
                   {"backend", compute.backend},
                   {"threads", compute.threads},
                   {"out_of_reach",
                    {std::filesystem::absolute(scoring.source.file.path).string(), std::filesystem::absolute(data).string(),
                     std::filesystem::absolute(scoring.held_out.tokenizer_file.path).string()}}};
  const std::vector<uint8_t> input = json::to_cbor(given);
  return ask_lone_program({"/proc/self/exe", {kIsolatedCommand}}, {reinterpret_cast<const char*>(input.data()), input.size()});
}

void add_isolated(CLI::App& program) {
  CLI::App* command = program.add_subcommand(kIsolatedCommand, "the isolated run of the audit");
  command->group("");  // hidden
  command->callback([] {
    if (const int status = answer_alone(score_alone); status != 0) throw CLI::RuntimeError(status);
  });
}

}  // namespace fairway::app
