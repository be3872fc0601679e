// A model that makes text, from whatever the command line names. An artifact on the CPU keeps its integers, which is quicker
// and smaller; everything else runs in floats.
#pragma once

#include "app/command.h"
#include "generate/packed_executor.h"
#include "generate/sample.h"
#include "stages/tokenizer_check.h"
#include "tokenizer/tokenizer.h"

namespace fairway::app {

struct TextModelFlags {
  std::string from, recipe, tokenizer;
};

// As --tokenizer says, the one that the artifact carries (`carried`, empty: none), beside the model or of the run's data.
std::unique_ptr<Tokenizer> load_tokenizer(const TextModelFlags& flags, const std::string& carried);
// InputError when it is not the one that the model was made with.
void require_tokenizer_of(const Tokenizer& tokenizer, int64_t vocab, const Identities& claim);

class TextModel {
 public:
  TextModel(const TextModelFlags& flags, Machine& machine);

  const Recipe& recipe() const { return recipe_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  bool packed() const { return packed_ != nullptr; }
  Decoder decoder(int64_t length) const;  // one row

 private:
  Recipe recipe_;
  bool looped_ = false;
  std::unique_ptr<PackedWeights> packed_;
  std::shared_ptr<ParamStore> floats_;
  std::unique_ptr<Executor> own_;
  Executor* executor_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

}  // namespace fairway::app
