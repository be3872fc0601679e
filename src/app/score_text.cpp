#include "app/score_text.h"

#include <fmt/core.h>

#include <numbers>

#include "app/scoring_flags.h"
#include "app/text_input.h"
#include "app/text_model.h"
#include "base/error.h"
#include "base/file.h"
#include "base/output.h"
#include "base/writer_lock.h"
#include "textcode/edit_code.h"
#include "textcode/surprisal.h"

namespace fairway::app {
namespace {

using nlohmann::ordered_json;

// The text as one document: BOS, then its tokens, every one of them a target.
Scoring scoring_of(const ScoreRequest& request, WeightSource source, const Tokenizer& tokenizer, const TextTokens& tokens) {
  const ScoreSettings settings = settings_of(request, source.recipe);
  std::vector<uint16_t> stream{static_cast<uint16_t>(kBosId)};
  stream.insert(stream.end(), tokens.ids.begin(), tokens.ids.end());
  HeldOut held_out{.tokens = {},
                   .tokenizer = tokenizer,
                   .bytes = make_byte_tables(tokenizer, static_cast<int>(source.recipe.model.vocab)),
                   .counts = {},
                   .shards = {},
                   .count_files = {},
                   .tokenizer_file = {},
                   .notes = {}};
  return {std::move(source), std::move(held_out), settings, std::move(stream), true, {}};
}

struct ScoredText {
  std::string text;
  TextTokens tokens;
  std::vector<double> bits;  // of each token
  double restoring = 0;      // bits
  ordered_json json;
  std::string line;

  double bits_per_byte(double nats) const {
    return text.empty() ? 0 : (nats / std::numbers::ln2 + restoring) / static_cast<double>(text.size());
  }
};

void add_changes(ScoredText& scored) {
  const TextTokens& tokens = scored.tokens;
  scored.json["read_bytes"] = tokens.read.size();
  scored.json["changed_spans"] = tokens.edits.size();
  scored.json["changed_bytes"] = changed_bytes(tokens.edits);
  scored.json["restoring_bits"] = scored.restoring;
}

void warn_of_changes(const ScoredText& scored, const std::string& name, bool quiet) {
  if (scored.tokens.edits.empty() || quiet) return;
  print_err(
      fmt::format("fairway: {}: the tokenizer changes {} of its {} bytes, in {} places; the model reads {} bytes. {:.0f} bits "
                  "that restore the text are counted.\n",
                  name, changed_bytes(scored.tokens.edits), scored.text.size(), scored.tokens.edits.size(),
                  scored.tokens.read.size(), scored.restoring));
}

void score_tokens(ScoredText& scored, const Scoring& scoring, Machine& machine, bool quiet, Communicator& comm) {
  const ScoredRun run = score_stream(scoring, scoring.settings, scoring.stream, machine, quiet, comm);
  if (!comm.root()) return;
  for (int64_t target = 1; target <= run.score.tokens; ++target)
    scored.bits.push_back(static_cast<double>(run.ledger.nll(target)) / std::numbers::ln2);
  scored.json = score_json(scoring, scoring.settings, run);
  scored.json.erase("text");
  scored.json.erase("whole");
  scored.json["val_bpb"] = scored.bits_per_byte(run.score.nats);
  scored.json["bytes"] = scored.text.size();
  scored.line =
      fmt::format("{}: {:.4f} bits per byte over {} bytes ({} tokens) in {:.1f} s\n", name_of(scoring.settings.score.mode),
                  scored.bits_per_byte(run.score.nats), scored.text.size(), run.score.tokens, run.score.seconds);
}

void tell_pieces(ScoredText& scored, const Tokenizer& tokenizer, const ScoreRequest& request, const ScoreTextFlags& flags) {
  if (!flags.surprisal && flags.page.empty()) return;
  const std::vector<textcode::TextPiece> pieces = textcode::pieces_of(tokenizer, scored.tokens, scored.bits);
  if (!flags.page.empty()) {
    const WriterLock lock = WriterLock::of_file(flags.page);
    write_file_atomic(flags.page, textcode::surprisal_page(pieces, {.title = request.from + " reads " + flags.text,
                                                                    .bits_per_byte = scored.json["val_bpb"],
                                                                    .bytes = scored.text.size(),
                                                                    .tokens = scored.tokens.ids.size(),
                                                                    .restoring_bits = scored.restoring}));
    scored.json["page"] = flags.page;
    scored.line += "the page is " + flags.page + "\n";
  }
  if (!flags.surprisal) return;
  ordered_json list = ordered_json::array();
  for (const textcode::TextPiece& piece : pieces) {
    ordered_json& told = list.emplace_back(ordered_json{{"text", piece.text}, {"bits", piece.bits}});
    if (piece.changed) told["read"] = piece.read;
    scored.line += fmt::format("{:8.3f}  {}\n", piece.bits,
                               ordered_json(piece.text).dump(-1, ' ', false, ordered_json::error_handler_t::replace));
  }
  scored.json["pieces"] = std::move(list);
}

}  // namespace

int run_score_text(const CommonFlags& common, const ScoreRequest& request, const ScoreTextFlags& flags, Communicator& comm) {
  if (!request.data.empty()) throw InputError("--text and --data: give one of them");
  if (!flags.page.empty()) require_place_for_file(flags.page);
  WeightSource source = open_weights(request.from, request.recipe, request.overrides);
  const TextModelFlags model{.from = request.from, .recipe = request.recipe, .tokenizer = request.tokenizer};
  const std::unique_ptr<Tokenizer> loaded = load_tokenizer(model, source.weights.tokenizer_model);
  const Tokenizer& tokenizer = *loaded;
  require_tokenizer_of(tokenizer, source.recipe.model.vocab, tokenizer_claim(source));
  ScoredText scored;
  scored.text = read_text_input(flags.text, "--text");
  scored.tokens = tokenize_text(tokenizer, scored.text);
  scored.restoring = textcode::bits_of_edits(scored.tokens.edits, scored.tokens.read);
  if (scored.tokens.ids.empty()) {
    scored.json = {{"val_loss", 0.0}, {"val_bpb", scored.bits_per_byte(0)}, {"tokens", 0}, {"bytes", scored.text.size()}};
    scored.line = fmt::format("{:.4f} bits per byte over {} bytes (no tokens)\n", scored.bits_per_byte(0), scored.text.size());
  } else {
    const Scoring scoring = scoring_of(request, std::move(source), tokenizer, scored.tokens);
    Machine machine(common);
    score_tokens(scored, scoring, machine, common.quiet, comm);
  }
  if (!comm.root()) return 0;
  add_changes(scored);
  warn_of_changes(scored, flags.text, common.quiet);
  tell_pieces(scored, tokenizer, request, flags);
  print_result(common, scored.json, scored.line);
  return 0;
}

}  // namespace fairway::app
