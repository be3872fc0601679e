// `fairway data tokenize | train-tokenizer | inspect`; overlap and fetch are files of their own.
#include <fmt/core.h>

#include "app/command.h"
#include "app/named_inputs.h"
#include "base/error.h"
#include "base/output.h"
#include "base/progress_line.h"
#include "data/inspect.h"
#include "data/tools.h"

namespace fairway::app {
namespace {

nlohmann::ordered_json seed_json(const std::optional<uint64_t>& seed) {
  return seed ? nlohmann::ordered_json(*seed) : nlohmann::ordered_json(nullptr);
}

// null: the folder has not both texts, or they could not be compared.
nlohmann::ordered_json shared_json(const std::optional<data::SharedDocuments>& shared) {
  return shared && shared->unknown.empty() ? nlohmann::ordered_json(shared->shared) : nlohmann::ordered_json(nullptr);
}

// Nobody's text is changed without a word.
void tell_changes(uint64_t documents, uint64_t bytes, uint64_t all_documents, uint64_t all_bytes, bool quiet) {
  if (documents == 0 || quiet) return;
  print_err(
      fmt::format("fairway: the tokenizer changes {} of {} bytes, in {} of {} documents (characters replaced, blanks joined or "
                  "dropped); data train-tokenizer --lossless makes tokenizers that change nothing\n",
                  bytes, all_bytes, documents, all_documents));
}

std::string left_out_sentence(const data::TokenizeOptions& options, uint64_t left_out) {
  if (!options.apart) return "";
  if (left_out == 0) return "the validation text has none of the training documents\n";
  return fmt::format("left out {} training document{} that the validation text has too\n", left_out, left_out == 1 ? "" : "s");
}

void add_tokenize(CLI::App& parent) {
  auto options = std::make_shared<data::TokenizeOptions>();
  auto inputs = std::make_shared<std::vector<std::string>>();
  auto validation = std::make_shared<std::string>();
  CLI::App* command =
      add_command(parent, "tokenize", "JSON lines or text (plain, .gz, .xz, .zst) to shards", [=](const CommonFlags& flags) {
        options->inputs.assign(inputs->begin(), inputs->end());
        if (std::filesystem::exists(options->out) && !std::filesystem::is_directory(options->out))
          throw InputError("--out " + options->out.string() + ": is a file; expected a folder for the shards");
        if (!validation->empty()) options->validation = *validation;
        options->threads = flags.threads > 0 ? flags.threads : hardware_threads();
        const GoesOn goes_on("", flags.quiet);
        ProgressLine line(flags.quiet);
        options->progress = [&](const data::TokenizeProgress& p) {
          if (line.due())
            line.show(fmt::format("{} documents, {} tokens", quantity_text(static_cast<double>(p.documents)),
                                  quantity_text(static_cast<double>(p.tokens))));
        };
        const data::TokenizeResult r = data::tokenize(*options);
        tell_changes(r.changed_documents, r.changed_bytes, r.documents, r.text_bytes, flags.quiet);
        print_result(flags,
                     {{"documents", r.documents},
                      {"tokens", r.tokens},
                      {"bytes", r.bytes},
                      {"text_bytes", r.text_bytes},
                      {"changed_documents", r.changed_documents},
                      {"changed_bytes", r.changed_bytes},
                      {"left_out_documents", r.left_out},
                      {"shards", r.shards},
                      {"shuffle", seed_json(options->shuffle)},
                      {"pieces", options->pieces},
                      {"seconds", r.seconds},
                      {"resumed_documents", r.resumed_documents}},
                     fmt::format("{} documents, {} tokens, {} bytes in {} shards ({:.1f} s) to {}\n", r.documents, r.tokens,
                                 r.bytes, r.shards, r.seconds, options->out.string()) +
                         left_out_sentence(*options, r.left_out));
        return 0;
      });
  command->add_option("IN", *inputs, "training text");
  command->add_option("--tokenizer", options->tokenizer, "SentencePiece model")->required();
  command->add_option("--out", options->out, "folder for the shards")->required();
  command->add_option("--shards", options->shards, "number of training shards, of equal size (0: 100 M tokens each)")
      ->check(CLI::Range(0, 100000));
  command->add_option("--shuffle", options->shuffle, "write the training documents in a random order fixed by this seed")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 53));
  command
      ->add_option(
          "--pieces", options->pieces,
          "cut longer training documents into pieces of at most this many tokens, each a document of its own (0: none)")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 31));
  command->add_option("--val", *validation, "text of the validation shard");
  command->add_flag("--apart", options->apart, "leave out training documents that the validation text has too");
  command->add_flag("--byte-counts", options->byte_counts, "also write the bytes of each validation token");
  command->add_flag("--case-ops", options->case_ops,
                    "transform the case of letters first (bijective; implied by a tokenizer with the operators)");
}

void add_train_tokenizer(CLI::App& parent) {
  auto options = std::make_shared<data::TrainTokenizerOptions>();
  auto inputs = std::make_shared<std::vector<std::string>>();
  CLI::App* command = add_command(parent, "train-tokenizer", "train a SentencePiece BPE model with the challenge's settings",
                                  [=](const CommonFlags& flags) {
                                    options->inputs.assign(inputs->begin(), inputs->end());
                                    const data::TrainTokenizerResult r = data::train_tokenizer(*options);
                                    tell_changes(r.changed_documents, r.changed_bytes, r.documents, r.bytes, flags.quiet);
                                    print_result(flags,
                                                 {{"vocab", r.vocab},
                                                  {"documents", r.documents},
                                                  {"bytes", r.bytes},
                                                  {"changed_documents", r.changed_documents},
                                                  {"changed_bytes", r.changed_bytes},
                                                  {"lossless", options->lossless},
                                                  {"sha256", r.sha256}},
                                                 fmt::format("{} pieces from {} documents ({} bytes) to {}\n", r.vocab,
                                                             r.documents, r.bytes, options->out.string()));
                                    return 0;
                                  });
  command->add_option("IN", *inputs, "text to learn from")->required();
  command->add_option("--vocab", options->vocab, "number of pieces")->capture_default_str()->check(CLI::Range(300, 65536));
  command->add_option("--out", options->out, "model file to write")->required();
  command->add_flag("--case-ops", options->case_ops, "with the operators of the case transform");
  command->add_flag("--lossless", options->lossless,
                    "no normalisation: blanks and characters stay as written, and tokens give any bytes back");
}

void add_inspect(CLI::App& parent) {
  auto folder = std::make_shared<std::string>();
  auto options = std::make_shared<data::InspectOptions>();
  CLI::App* command = add_command(parent, "inspect", "check a folder of shards and show its tokens and documents",
                                  [=](const CommonFlags& flags) {
                                    require_data(*folder, "");
                                    const data::InspectResult r = data::inspect(*folder, *options);
                                    print_result(flags,
                                                 {{"shards", r.shards},
                                                  {"tokens", r.tokens},
                                                  {"shuffle", seed_json(r.shuffle)},
                                                  {"pieces", r.pieces},
                                                  {"shared_documents", shared_json(r.shared)},
                                                  {"problems", r.problems},
                                                  {"compared_tokens", r.compared_tokens},
                                                  {"compared_byte_counts", r.compared_byte_counts},
                                                  {"sampled_tokens", r.sampled_tokens},
                                                  {"sampled_documents", r.sampled_documents}},
                                                 r.text);
                                    for (const std::string& problem : r.problems) print_err("fairway: " + problem + "\n");
                                    return r.problems.empty() ? 0 : 2;  // shards that no other command would take
                                  });
  command->add_option("DIR", *folder, "folder of shards")->required();
  command->add_option("--sample", options->sample_tokens, "how many tokens to read (0: all)")->capture_default_str();
  command->add_option("--val", options->validation,
                      "text of the validation shards, to compare their tokens and byte counts with");
  command->add_flag("--no-checksums{false}", options->checksums, "do not compare every byte with the manifest");
}

}  // namespace

void add_data(CLI::App& program) {
  CLI::App* data = program.add_subcommand("data", "make shards and tokenizers from text, fetch them, and inspect them");
  data->require_subcommand(1);
  add_tokenize(*data);
  add_train_tokenizer(*data);
  add_inspect(*data);
  add_overlap(*data);
  add_fetch(*data);
}

}  // namespace fairway::app
