// Samples of a run: what its artifact and its weights write after beginnings from the validation text, beside the text itself.
#include <algorithm>

#include "app/stages.h"
#include "app/writer.h"
#include "generate/text_stream.h"
#include "stages/held_out.h"

namespace fairway::app {
namespace {

using nlohmann::ordered_json;

constexpr size_t kBeginningTokens = 32, kLeastTruthTokens = 8;

struct Beginning {
  std::string prompt, truth;
};

// Where a document of more than a few tokens begins between `from` and `end`; else `from` itself.
size_t document_after(std::span<const uint16_t> text, size_t from, size_t end) {
  for (size_t at = from; at < end; ++at) {
    const auto inside = text.subspan(at + 1, kBeginningTokens + kLeastTruthTokens);
    if (text[at] == kBosId && std::find(inside.begin(), inside.end(), kBosId) == inside.end()) return at + 1;
  }
  return from;
}

// Places at equal distances through the text, each moved to the next document. The truth ends with its document.
std::vector<Beginning> cut_beginnings(std::span<const uint16_t> text, const Tokenizer& tokenizer, size_t count,
                                      size_t truth_tokens) {
  std::vector<Beginning> out;
  const size_t length = kBeginningTokens + std::max(truth_tokens, kLeastTruthTokens);
  if (count == 0 || text.size() < count * length) return out;
  const size_t stretch = text.size() / count;
  for (size_t i = 0; i < count; ++i) {
    const size_t begin = document_after(text, i * stretch, (i + 1) * stretch - length);
    TextStream stream(tokenizer, {});
    Beginning one;
    for (size_t k = 0; k < length && text[begin + k] != kBosId; ++k)
      (k < kBeginningTokens ? one.prompt : one.truth) += stream.push(text[begin + k]);
    one.truth += stream.finish();
    one.prompt.erase(0, one.prompt.find_first_not_of(' '));
    if (!one.prompt.empty() && !one.truth.empty()) out.push_back(std::move(one));
  }
  return out;
}

std::vector<std::string> written_after(const std::vector<Beginning>& beginnings, const TextModel& model,
                                       const TextRequest& options) {
  std::vector<std::string> texts;
  for (const Beginning& beginning : beginnings) {
    TextRequest flags = options;
    flags.prompt = beginning.prompt;
    texts.push_back(write_text(model, flags, [](const std::string&) { return true; }).text);
  }
  return texts;
}

}  // namespace

pipeline::Outcome do_samples(const pipeline::SamplesRequest& request, const Compute& compute) {
  Machine machine(compute);
  TextRequest flags;
  flags.sample.tokens = request.tokens;
  flags.sample.temperature = request.temperature;
  flags.sample.seed = static_cast<uint64_t>(request.seed);
  std::vector<Beginning> beginnings;
  std::vector<std::string> packed, floats;
  {
    const TextModel model({.from = request.model, .tokenizer = request.tokenizer}, machine);
    if (!request.data.empty()) {
      const auto held_out = open_held_out(request.data, model.recipe(), nullptr, request.tokenizer);
      if (held_out)
        beginnings = cut_beginnings(held_out->tokens, model.tokenizer(), static_cast<size_t>(request.beginnings),
                                    static_cast<size_t>(request.tokens));
    }
    for (const std::string& prompt : request.prompts) beginnings.push_back({prompt, ""});
    packed = written_after(beginnings, model, flags);
  }
  if (!request.weights.empty())
    floats = written_after(beginnings, TextModel({.from = request.weights, .tokenizer = request.tokenizer}, machine), flags);
  pipeline::Outcome outcome{.result = ordered_json::array()};
  for (size_t i = 0; i < beginnings.size(); ++i) {
    outcome.result.push_back({{"prompt", beginnings[i].prompt}, {"text", packed[i]}});
    if (!floats.empty()) outcome.result.back()["float"] = floats[i];
    if (!beginnings[i].truth.empty()) outcome.result.back()["truth"] = beginnings[i].truth;
  }
  return outcome;
}

}  // namespace fairway::app
