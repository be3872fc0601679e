#include "stages/held_out.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "base/progress_line.h"
#include "data/validation.h"
#include "stages/shared_score.h"

namespace fairway {
namespace {

void require_tokens_of(const data::HeldOutTokens& read, const std::filesystem::path& folder, const Recipe& recipe) {
  const std::vector<uint16_t>& tokens = read.tokens;
  if (const auto past = std::find_if(tokens.begin(), tokens.end(), [&](uint16_t id) { return id >= recipe.model.vocab; });
      past != tokens.end()) {
    throw InputError(fmt::format("{}: validation token {} at {} is outside the model's vocabulary of {}", folder.string(),
                                 *past, past - tokens.begin(), recipe.model.vocab));
  }
  if (!read.byte_counts.empty() && read.byte_counts.size() != tokens.size()) {
    throw InputError(fmt::format("{}: fineweb_val_bytes_*.bin give the bytes of {} tokens, but the validation shards hold {}",
                                 folder.string(), read.byte_counts.size(), tokens.size()));
  }
}

}  // namespace

std::optional<HeldOut> open_held_out(const std::filesystem::path& folder, const Recipe& recipe, const Identities* claim,
                                     const std::filesystem::path& named) {
  if (data::list_validation(folder).empty()) return std::nullopt;
  data::FolderTokenizer beside = data::open_tokenizer(folder, named);
  if (!beside.tokenizer) {
    throw InputError(
        fmt::format("{}: holds validation shards but no tokenizer.model, which bits per byte need; name it with --tokenizer",
                    folder.string()));
  }
  Vocabulary& tokenizer = *beside.tokenizer;
  if (tokenizer.vocab() != recipe.model.vocab)
    throw InputError(fmt::format("{}: a vocabulary of {}, but model.vocab is {}", beside.file.string(), tokenizer.vocab(),
                                 recipe.model.vocab));
  if (claim != nullptr) require_tokenizer(*claim, beside);
  data::HeldOutTokens read = data::Validation::read(folder);
  require_tokens_of(read, folder, recipe);
  ByteTables bytes = make_byte_tables(tokenizer, static_cast<int>(recipe.model.vocab));
  FileIdentity tokenizer_file{beside.file, tokenizer.bytes().size(), tokenizer.sha256()};
  return HeldOut{.tokens = std::move(read.tokens),
                 .tokenizer = std::move(tokenizer),
                 .bytes = std::move(bytes),
                 .counts = std::move(read.byte_counts),
                 .shards = std::move(read.shards),
                 .count_files = std::move(read.byte_count_files),
                 .tokenizer_file = std::move(tokenizer_file),
                 .notes = std::move(beside.notes)};
}

void require_one_window(int64_t tokens, int64_t length, const std::string& folder) {
  if (tokens > length) return;
  throw InputError(fmt::format("{}: {} validation tokens, fewer than one window of {} and its target", folder, tokens, length));
}

Validator make_validator(const Recipe& recipe, const HeldOut& held_out, const ScoreContext& context, Communicator& comm,
                         bool quiet) {
  return [&recipe, &held_out, context, &comm, quiet](const Tensor& weights, ModelStage stage) {
    const auto load = [&weights](ParamStore& params) { params.set_values(weights); };
    // As it trains, whatever the score will be; nobody audits it.
    ScoreSettings settings{.score = recipe.score, .losses_only = true};
    settings.score.mode = {ScoreMode::plain};
    settings.score.context = recipe.data.seq_len;
    settings.score.documents = packs_documents(recipe);
    const int64_t targets = challenge_targets(static_cast<int64_t>(held_out.tokens.size()), recipe.data.seq_len);
    ScoreLedger ledger(std::span(held_out.tokens).first(static_cast<size_t>(targets) + 1));
    ProgressLine line(quiet || !comm.root());
    const ScoreProgress progress = [&](int64_t done, int64_t total) {
      if (line.due())
        line.show(fmt::format("validation {:.0f}%", 100.0 * static_cast<double>(done) / static_cast<double>(total)));
    };
    const double begun = seconds_now();
    const auto evaluator = make_evaluator({recipe, {.looped = stage.looped}, load, {}}, settings, context);
    score_on_ranks(*evaluator, settings, ledger, progress, comm);
    const Score score = measure(ledger, held_out.target_bytes());
    return Validation{score.loss(), score.bits_per_byte(), seconds_now() - begun};
  };
}

}  // namespace fairway
