#include "app/writer.h"

#include "base/clock.h"
#include "base/error.h"
#include "generate/text_stream.h"
#include "train/loop.h"

namespace fairway::app {
namespace {

const double kProgramBegan = seconds_now();  // before main()

}  // namespace

Written write_text(const TextModel& model, const WriterFlags& flags, const std::function<bool(const std::string&)>& tell) {
  const std::vector<int> before = encode_text(model.tokenizer(), flags.prompt);
  std::vector<int32_t> prompt{kBosId};
  prompt.insert(prompt.end(), before.begin(), before.end());
  SampleOptions options = flags.sample;
  options.stop = kBosId;  // the next document
  options.vocab = model.tokenizer().vocab();
  const int64_t window = flags.context > 0 ? flags.context : model.recipe().data.seq_len;
  Decoder decoder = model.decoder(std::min(window, static_cast<int64_t>(prompt.size()) + options.tokens));
  TextStream stream(model.tokenizer(), before);
  Written out;
  double first = 0;
  const auto say = [&](const std::string& piece) {
    out.text += piece;
    return piece.empty() || tell(piece);
  };
  out.tokens = sample(decoder, prompt, options, [&](int32_t token) {
    if (first == 0) first = seconds_now();
    out.interrupted = !say(stream.push(token));
    return !out.interrupted;
  });
  if (!out.interrupted) say(stream.finish());
  if (first == 0) first = seconds_now();  // a text that ended before it began
  const double took = seconds_now() - first;
  out.first_token = first - kProgramBegan;
  out.rate = out.tokens.size() > 1 ? static_cast<double>(out.tokens.size() - 1) / std::max(took, 1e-9) : 0;
  return out;
}

}  // namespace fairway::app
