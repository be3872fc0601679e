#include "app/validation.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/progress_line.h"
#include "data/shard.h"

namespace fairway::app {

std::optional<HeldOut> open_held_out(const std::filesystem::path& folder, const Recipe& recipe) {
  if (data::list_validation(folder).empty()) return std::nullopt;
  const std::filesystem::path model = folder / "tokenizer.model";
  if (!std::filesystem::exists(model)) {
    throw InputError(
        fmt::format("{}: holds validation shards but no tokenizer.model, which bits per byte need", folder.string()));
  }
  const data::ShardSet shards = data::ShardSet::open_validation(folder);
  std::vector<uint16_t> tokens = shards.read_all();
  if (const auto past = std::find_if(tokens.begin(), tokens.end(), [&](uint16_t id) { return id >= recipe.model.vocab; });
      past != tokens.end()) {
    throw InputError(fmt::format("{}: validation token {} at {} is outside of the model's vocabulary of {}", folder.string(),
                                 *past, past - tokens.begin(), recipe.model.vocab));
  }
  return HeldOut{std::move(tokens), make_byte_tables(Tokenizer::load(model), static_cast<int>(recipe.model.vocab))};
}

void require_one_window(const HeldOut& held_out, int64_t length, const std::string& folder) {
  if (static_cast<int64_t>(held_out.tokens.size()) > length) return;
  throw InputError(fmt::format("{}: {} validation tokens, fewer than one window of {} and its target", folder,
                               held_out.tokens.size(), length));
}

int64_t scoring_rows(const Recipe& recipe) {
  constexpr int64_t kTokensAtOnce = 4096;  // keeps a batch's activations near the cache
  return std::max<int64_t>(1, kTokensAtOnce / recipe.data.seq_len);
}

Validator make_validator(const Recipe& recipe, const HeldOut& held_out, Executor& executor, bool quiet) {
  return [&recipe, &held_out, &executor, quiet](const Tensor& weights, ModelStage stage) {
    EvalModel model(recipe, scoring_rows(recipe), recipe.data.seq_len, {.looped = stage.looped}, executor);
    FAIRWAY_ASSERT(model.params().flat_values().spec == weights.spec, "weights of another model");
    std::memcpy(model.params().flat_values().data, weights.data, weights.spec.bytes());
    ProgressLine line(quiet);
    const Score score =
        score_plain(model, held_out.tokens, held_out.bytes, recipe.model.vocab, [&](int64_t done, int64_t total) {
          if (line.due())
            line.show(fmt::format("validation {:.0f}%", 100.0 * static_cast<double>(done) / static_cast<double>(total)));
        });
    return Validation{score.loss(), score.bits_per_byte(), score.seconds};
  };
}

}  // namespace fairway::app
