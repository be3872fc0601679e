#include "app/text_model.h"

#include <fmt/core.h>

#include <atomic>
#include <future>

#include "app/run_memory.h"
#include "artifact/artifact.h"
#include "base/error.h"
#include "base/file.h"
#include "stages/weights.h"

namespace fairway::app {
namespace {

namespace fs = std::filesystem;

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

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const TextModelFlags& flags, const std::string& carried) {
  if (flags.tokenizer.empty() && !carried.empty())
    return std::make_unique<Tokenizer>(Tokenizer::from_bytes(carried, flags.from));
  return std::make_unique<Tokenizer>(Tokenizer::load(tokenizer_for(flags.from, flags.tokenizer)));
}

void require_tokenizer_of(const Tokenizer& tokenizer, int64_t vocab, const Identities& claim) {
  if (tokenizer.vocab() > vocab)
    throw InputError(fmt::format("{}: {} pieces, but the model has {} tokens", tokenizer.name(), tokenizer.vocab(), vocab));
  require_tokenizer(claim, tokenizer, tokenizer.name());
}

TextModel::TextModel(const TextModelFlags& flags, Machine& machine) : executor_(machine.executor.get()) {
  const bool artifact = fs::is_regular_file(flags.from) && is_artifact(flags.from);
  Identities claim{.by = flags.from};
  // Beside the weights: reading it takes a few milliseconds of the time to the first token.
  std::future<std::unique_ptr<Tokenizer>> tokenizer;
  if (artifact && flags.recipe.empty() && executor_->backend() == Backend::cpu) {
    const StoredFile file(flags.from, machine.queue.pool());
    ArtifactReader reader(file.bytes(), flags.from, {.pool = &machine.queue.pool()});
    const QuantizedModel& model = reader.model();
    tokenizer = std::async(std::launch::async, load_tokenizer, flags, model.tokenizer_model);
    recipe_ = artifact_recipe(model);
    looped_ = model.looped;
    claim.tell(IdentityKind::tokenizer, {model.tokenizer});
    packed_ = std::make_unique<PackedWeights>(model);
    reader.read([&](QuantizedTensor& tensor) { packed_->take(tensor); });
    packed_->finish(model, machine.queue.pool());
    own_ = std::make_unique<PackedExecutor>(*packed_, machine.queue);
    executor_ = own_.get();
  } else {
    const WeightSource source = open_weights(flags.from, flags.recipe, {});
    tokenizer = std::async(std::launch::async, load_tokenizer, flags, source.weights.tokenizer_model);
    recipe_ = source.recipe;
    claim = tokenizer_claim(source);
    looped_ = source.weights.looped;
    floats_ = source.weights.params;
  }
  tokenizer_ = tokenizer.get();
  require_tokenizer_of(*tokenizer_, recipe_.model.vocab, claim);
}

Decoder TextModel::decoder(int64_t length) const {
  return {recipe_, packed_ ? packed_->params() : *floats_, 1, length, {.looped = looped_}, *executor_};
}

}  // namespace fairway::app
