#include "app/text_model.h"

#include <fmt/core.h>

#include "app/weights.h"
#include "artifact/artifact.h"
#include "base/error.h"
#include "score/eval_model.h"

namespace fairway::app {
namespace {

namespace fs = std::filesystem;

// A run keeps its shards and their tokenizer in data/; an artifact usually lies in its run's folder.
fs::path tokenizer_beside(const fs::path& from) {
  const fs::path folder = fs::is_directory(from) ? from : from.parent_path();
  const fs::path alone = folder / "tokenizer.model";
  return fs::exists(alone) ? alone : folder / "data" / "tokenizer.model";
}

std::unique_ptr<Tokenizer> open_tokenizer(const TextModelFlags& flags, int64_t vocab, const std::string& wanted_hash) {
  const fs::path path = flags.tokenizer.empty() ? tokenizer_beside(flags.from) : fs::path(flags.tokenizer);
  if (!fs::exists(path)) throw InputError(path.string() + ": no such file; name the tokenizer with --tokenizer");
  auto tokenizer = std::make_unique<Tokenizer>(Tokenizer::load(path));
  if (tokenizer->vocab() > vocab)
    throw InputError(fmt::format("{}: {} pieces, the model has {} tokens", path.string(), tokenizer->vocab(), vocab));
  if (!wanted_hash.empty() && tokenizer->sha256() != wanted_hash)
    throw InputError(fmt::format("{}: not the tokenizer that {} was trained with (SHA-256 {}…, expected {}…)", path.string(),
                                 flags.from, tokenizer->sha256().substr(0, 12), wanted_hash.substr(0, 12)));
  return tokenizer;
}

}  // namespace

TextModel::TextModel(const TextModelFlags& flags, Machine& machine) : executor_(machine.executor.get()) {
  const bool artifact = fs::is_regular_file(flags.from) && is_artifact(flags.from);
  std::string tokenizer_hash;
  if (artifact && flags.recipe.empty() && executor_->backend() == Backend::cpu) {
    const QuantizedModel model = load_artifact(flags.from, {.pool = &machine.queue.pool()});
    recipe_ = artifact_recipe(model);
    looped_ = model.looped;
    tokenizer_hash = model.tokenizer;
    packed_ = std::make_unique<PackedWeights>(model, machine.queue.pool());
    own_ = std::make_unique<PackedExecutor>(*packed_, machine.queue);
    executor_ = own_.get();
  } else {
    const WeightSource source = open_weights(flags.from, flags.recipe, {});
    recipe_ = source.recipe;
    looped_ = stored_looped(source.weights, source.recipe);
    floats_ = std::make_unique<ParamStore>(parameter_table(recipe_), ParamStore::Gradients::none);
    load_weights(*floats_, source.weights);
  }
  tokenizer_ = open_tokenizer(flags, recipe_.model.vocab, tokenizer_hash);
}

Decoder TextModel::decoder(int64_t length) const {
  return {recipe_, packed_ ? packed_->params() : *floats_, 1, length, {.looped = looped_}, *executor_};
}

}  // namespace fairway::app
