#include "app/text_model.h"

#include <fmt/core.h>

#include <atomic>
#include <future>

#include "artifact/artifact.h"
#include "base/error.h"
#include "base/file.h"
#include "stages/weights.h"

namespace fairway::app {
namespace {

namespace fs = std::filesystem;

// A run keeps its shards and their tokenizer in data/; an artifact usually lies in its run's folder.
fs::path tokenizer_beside(const fs::path& from) {
  const fs::path folder = fs::is_directory(from) ? from : from.parent_path();
  const fs::path alone = folder / "tokenizer.model";
  return fs::exists(alone) ? alone : folder / "data" / "tokenizer.model";
}

// A file in memory of large pages, read by all threads: a third of the time that one thread takes with small ones.
class StoredFile {
 public:
  StoredFile(const fs::path& path, ThreadPool& pool) : StoredFile(InputFile(path), path, pool) {}
  std::string_view bytes() const { return {reinterpret_cast<const char*>(memory_.data()), size_}; }

 private:
  StoredFile(const InputFile& file, const fs::path& path, ThreadPool& pool) : size_(file.size()), memory_("file", size_) {
    constexpr uint64_t kPart = 1 << 21;
    const auto parts = static_cast<int64_t>((size_ + kPart - 1) / kPart);
    std::atomic<bool> whole{true};
    pool.parallel_for(parts, [&](int64_t i) {
      const uint64_t first = static_cast<uint64_t>(i) * kPart, count = std::min<uint64_t>(kPart, size_ - first);
      if (file.read_at(memory_.data() + first, count, first) != count) whole = false;
    });
    if (!whole) throw InputError(path.string() + ": became shorter while it was read");
  }
  uint64_t size_;
  Memory memory_;
};

std::unique_ptr<Tokenizer> load_tokenizer(const fs::path& path) { return std::make_unique<Tokenizer>(Tokenizer::load(path)); }

}  // namespace

std::filesystem::path tokenizer_path(const TextModelFlags& flags) {
  fs::path path = flags.tokenizer.empty() ? tokenizer_beside(flags.from) : fs::path(flags.tokenizer);
  if (!fs::exists(path)) throw InputError(path.string() + ": no such file; name the tokenizer with --tokenizer");
  return path;
}

void require_tokenizer_of(const Tokenizer& tokenizer, const TextModelFlags& flags, int64_t vocab, const TokenizerClaim& claim) {
  const fs::path path = tokenizer_path(flags);
  if (tokenizer.vocab() > vocab)
    throw InputError(fmt::format("{}: {} pieces, but the model has {} tokens", path.string(), tokenizer.vocab(), vocab));
  require_tokenizer(claim, tokenizer, path);
}

TextModel::TextModel(const TextModelFlags& flags, Machine& machine) : executor_(machine.executor.get()) {
  // Beside the weights: reading it takes a few milliseconds of the time to the first token.
  std::future<std::unique_ptr<Tokenizer>> tokenizer = std::async(std::launch::async, load_tokenizer, tokenizer_path(flags));
  const bool artifact = fs::is_regular_file(flags.from) && is_artifact(flags.from);
  TokenizerClaim claim{"", flags.from};
  if (artifact && flags.recipe.empty() && executor_->backend() == Backend::cpu) {
    const StoredFile file(flags.from, machine.queue.pool());
    ArtifactReader reader(file.bytes(), flags.from, {.pool = &machine.queue.pool()});
    const QuantizedModel& model = reader.model();
    recipe_ = artifact_recipe(model);
    looped_ = model.looped;
    claim.hash = model.tokenizer;
    packed_ = std::make_unique<PackedWeights>(model);
    reader.read([&](QuantizedTensor& tensor) { packed_->take(tensor); });
    packed_->finish(model, machine.queue.pool());
    own_ = std::make_unique<PackedExecutor>(*packed_, machine.queue);
    executor_ = own_.get();
  } else {
    const WeightSource source = open_weights(flags.from, flags.recipe, {});
    recipe_ = source.recipe;
    claim = tokenizer_claim(source);
    looped_ = source.weights.looped;
    floats_ = source.weights.params;
  }
  tokenizer_ = tokenizer.get();
  require_tokenizer_of(*tokenizer_, flags, recipe_.model.vocab, claim);
}

Decoder TextModel::decoder(int64_t length) const {
  return {recipe_, packed_ ? packed_->params() : *floats_, 1, length, {.looped = looped_}, *executor_};
}

}  // namespace fairway::app
