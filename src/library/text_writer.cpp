#include "library/text_writer.h"

#include "generate/text_stream.h"
#include "tokenizer/case_tokens.h"

namespace fairway {

int64_t text_window(const Recipe& recipe, int64_t context, int64_t tokens) {
  return std::min(context > 0 ? context : recipe.data.seq_len, tokens);
}

std::vector<int32_t> write_text(const Tokenizer& tokenizer, const Recipe& recipe,
                                const std::function<Decoder(int64_t)>& decoder, const TextRequest& request,
                                const TellText& tell) {
  const std::vector<int> before = encode_text(tokenizer, request.prompt);
  std::vector<int32_t> prompt{kBosId};
  prompt.insert(prompt.end(), before.begin(), before.end());
  SampleOptions options = request.sample;
  options.stop = kBosId;  // the next document
  options.vocab = tokenizer.vocab();
  Decoder model = decoder(text_window(recipe, request.context, static_cast<int64_t>(prompt.size()) + options.tokens));
  TextStream stream(tokenizer, before);
  bool goes_on = true;
  std::vector<int32_t> made = sample(model, prompt, options, [&](int32_t token) {
    goes_on = tell(token, stream.push(token));
    return goes_on;
  });
  if (goes_on) tell(kNoToken, stream.finish());
  return made;
}

}  // namespace fairway
