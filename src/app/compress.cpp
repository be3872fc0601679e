// `fairway compress` and `fairway decompress`: a text as the code of an artifact's predictions, and back byte for byte. Both
// run on the CPU whatever the backend, since no device gives the bits that every other machine gives.
#include <fmt/core.h>

#include "app/named_inputs.h"
#include "app/text_input.h"
#include "app/text_model.h"
#include "artifact/artifact.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/progress_line.h"
#include "base/writer_lock.h"
#include "stages/weights.h"
#include "textcode/exact_predictor.h"
#include "textcode/text_code.h"

namespace fairway::app {
namespace {

struct CodeFlags {
  TextModelFlags model;
  std::string in, out;
};

Compute on_cpu(Compute compute) {
  compute.backend = "cpu";
  return compute;
}

// What both commands open: an artifact's integers and its tokenizer.
class ArtifactCoder {
 public:
  ArtifactCoder(TextModelFlags flags, const Compute& compute) : machine_(on_cpu(compute)), line_(compute.quiet) {
    flags.from = artifact_in(flags.from);
    const std::string bytes = read_file(flags.from, kMostArtifactFileBytes);
    ArtifactReader reader(bytes, flags.from, {.pool = &pool()});
    const QuantizedModel& model = reader.model();
    recipe_ = artifact_recipe(model);
    looped_ = model.looped;
    weights_ = std::make_unique<PackedWeights>(model);
    reader.read([&](QuantizedTensor& tensor) { weights_->take(tensor); });
    weights_->finish(model, pool());
    tokenizer_ = load_tokenizer(flags, model.tokenizer_model);
    require_tokenizer_of(*tokenizer_, recipe_.model.vocab, tokenizer_identity({model.tokenizer}, flags.from));
    codec_ = {.tokenizer = tokenizer_.get(),
              .artifact = sha256_hex(bytes),
              .name = flags.from,
              .open = [this](int64_t tokens) { return open(tokens); },
              .progress = [this](int64_t done, int64_t total) { tell(done, total); }};
  }
  const textcode::TextCodec& codec() const { return codec_; }
  int64_t tokens() const { return tokens_; }
  double tokens_per_second() const { return tokens_ > 0 ? static_cast<double>(tokens_) / std::max(ended_ - begun_, 1e-9) : 0; }

 private:
  ThreadPool& pool() { return machine_.queue.pool(); }
  std::unique_ptr<textcode::TokenPredictor> open(int64_t tokens) {
    tokens_ = tokens;
    auto predictor =
        std::make_unique<textcode::ExactPredictor>(recipe_, *weights_, ModelStage{.looped = looped_}, tokens, machine_.queue);
    begun_ = seconds_now();
    return predictor;
  }
  void tell(int64_t done, int64_t total) {
    ended_ = seconds_now();
    if (!line_.due()) return;
    const double rate = static_cast<double>(done) / std::max(ended_ - begun_, 1e-9);
    line_.show(fmt::format("{}/{} tokens  {} tokens/s  {} left", done, total, quantity_text(rate),
                           duration_text(static_cast<double>(total - done) / rate)));
  }

  Machine machine_;
  ProgressLine line_;
  Recipe recipe_;
  bool looped_ = false;
  std::unique_ptr<PackedWeights> weights_;
  std::unique_ptr<Tokenizer> tokenizer_;
  textcode::TextCodec codec_;
  int64_t tokens_ = 0;
  double begun_ = 0, ended_ = 0;
};

struct Sizes {
  size_t from, to, text, code;
};

int tell_done(const CommonFlags& common, const ArtifactCoder& coder, const Sizes& sizes, double seconds) {
  const double bits = sizes.text == 0 ? 0 : 8.0 * static_cast<double>(sizes.code) / static_cast<double>(sizes.text);
  print_result(common,
               {{"bytes_in", sizes.from},
                {"bytes_out", sizes.to},
                {"bits_per_byte", bits},
                {"seconds", seconds},
                {"tokens", coder.tokens()},
                {"tokens_per_second", coder.tokens_per_second()}},
               fmt::format("{} bytes to {} bytes, {:.4f} bits per byte of text, {} tokens in {:.1f} s\n", sizes.from, sizes.to,
                           bits, coder.tokens(), seconds));
  return 0;
}

int run_compress(const CommonFlags& common, const CodeFlags& flags) {
  require_place_for_file(flags.out);
  const WriterLock lock = WriterLock::of_file(flags.out);
  const std::string text = read_text_input(flags.in, "--text");
  const double begun = seconds_now();
  const ArtifactCoder coder(flags.model, common);
  const std::string code = textcode::compress_text(text, coder.codec());
  write_file_atomic(flags.out, code);
  return tell_done(common, coder, {text.size(), code.size(), text.size(), code.size()}, seconds_now() - begun);
}

int run_decompress(const CommonFlags& common, const CodeFlags& flags) {
  require_place_for_file(flags.out);
  const WriterLock lock = WriterLock::of_file(flags.out);
  const std::string code = read_text_input(flags.in, "--in");
  const double begun = seconds_now();
  textcode::parse_text_code(code, flags.in);  // before the artifact is read
  const ArtifactCoder coder(flags.model, common);
  const std::string text = textcode::decompress_text(code, flags.in, coder.codec());
  write_file_atomic(flags.out, text);
  return tell_done(common, coder, {code.size(), text.size(), text.size(), code.size()}, seconds_now() - begun);
}

void add_code_flags(CLI::App& command, const std::shared_ptr<CodeFlags>& flags) {
  command.add_option("FILE", flags->model.from, "an artifact, or a run folder with its model.fwy")->required();
  command.add_option("--tokenizer", flags->model.tokenizer, "SentencePiece model (default: beside FILE, or RUN/data)");
}

}  // namespace

void add_compress(CLI::App& program) {
  auto flags = std::make_shared<CodeFlags>();
  CLI::App* command = add_command(program, "compress", "a text as the code of an artifact's predictions, on the CPU",
                                  [flags](const CommonFlags& common) { return run_compress(common, *flags); });
  add_code_flags(*command, flags);
  command->add_option("--text", flags->in, "any file, or - for standard input")->required();
  command->add_option("--out", flags->out, "compressed file to write")->required();
}

void add_decompress(CLI::App& program) {
  auto flags = std::make_shared<CodeFlags>();
  CLI::App* command = add_command(program, "decompress", "the text of a compressed file, byte for byte, on the CPU",
                                  [flags](const CommonFlags& common) { return run_decompress(common, *flags); });
  add_code_flags(*command, flags);
  command->add_option("--in", flags->in, "compressed file, or - for standard input")->required();
  command->add_option("--out", flags->out, "file for the text")->required();
}

}  // namespace fairway::app
