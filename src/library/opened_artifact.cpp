#include "library/opened_artifact.h"

#include <fmt/format.h>
#include <unistd.h>

#include "artifact/tensor_table.h"
#include "base/error.h"
#include "base/identity.h"
#include "model/shape/model_shape.h"
#include "recipe/recipe_json.h"
#include "stages/weights.h"
#include "tokenizer/case_tokens.h"

namespace fairway {
namespace {

constexpr size_t kMostTokens = size_t{1} << 20;

const char* coding_name(TensorCoding coding) {
  switch (coding) {
    case TensorCoding::integer_rows: return "integer_rows";
    case TensorCoding::half: return "half";
    case TensorCoding::single: return "single";
  }
  return "";
}

std::vector<OpenedArtifact::Entry> entries_of(const QuantizedModel& model) {
  std::map<ParamId, std::vector<int64_t>> shapes;
  for (const ParamInfo& info : parameter_table(model.model)) shapes[info.row().id] = info.shape;
  std::vector<OpenedArtifact::Entry> entries;
  for (const QuantizedTensor& t : model.tensors)
    entries.push_back({tensor_name(t.bank, t.slice), name_of(stream_role(t, model.model.layers)).data(), coding_name(t.coding),
                       t.slice < 0 ? shapes.at(t.bank) : std::vector<int64_t>{t.rows, t.cols}});
  return entries;
}

std::string described(const QuantizedModel& model, const Recipe& recipe, size_t bytes) {
  const nlohmann::ordered_json json{{"bytes", bytes},
                                    {"weights", parameter_count(model.model)},
                                    {"looped", model.looped},
                                    {"train_length", model.train_length},
                                    {"segment", model.segment},
                                    {"tokenizer", model.tokenizer},
                                    {"recipe_hash", model.recipe_hash},
                                    {"carries_tokenizer", !model.tokenizer_model.empty()},
                                    {"model", to_json_value(recipe).at("model")}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

// One computation at a time: the executor's threads and buffers serve one.
class OpenedArtifact::Turn {
 public:
  explicit Turn(OpenedArtifact& artifact) : artifact_(artifact) {
    if (artifact.is_of_another_process())
      throw InputError(artifact.name_ +
                       ": was opened before fork(), and its threads stayed with the parent; open it again here");
    if (artifact.computes_ == std::this_thread::get_id())
      throw InputError(artifact.name_ + ": computes a text already, whose receiver asked it to compute again");
    lock_ = std::unique_lock(artifact.computing_);
    artifact.computes_ = std::this_thread::get_id();
  }
  ~Turn() { artifact_.computes_ = std::thread::id(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  OpenedArtifact& artifact_;
  std::unique_lock<std::mutex> lock_;
};

OpenedArtifact::OpenedArtifact(std::string_view bytes, std::string name, int threads)
    : name_(std::move(name)),
      process_(getpid()),
      queue_(threads == 0 ? hardware_threads() : threads),
      model_(read_artifact(bytes, name_, {.pool = &queue_.pool()})),
      recipe_(artifact_recipe(model_)),
      entries_(entries_of(model_)),
      description_(described(model_, recipe_, bytes.size())) {}

bool OpenedArtifact::is_of_another_process() const { return getpid() != process_; }

const OpenedArtifact::Entry& OpenedArtifact::entry(size_t index) const {
  if (index >= entries_.size())
    throw InputError(fmt::format("{}: tensor {} was asked for, there are {}", name_, index, entries_.size()));
  return entries_[index];
}

size_t OpenedArtifact::index_of(std::string_view name) const {
  for (size_t i = 0; i < entries_.size(); ++i)
    if (entries_[i].name == name) return i;
  throw InputError(fmt::format("{}: has no tensor {}; the first is {}", name_, name, entries_.front().name));
}

const QuantizedTensor& OpenedArtifact::integer_tensor(size_t index) const {
  const QuantizedTensor& t = tensor(index);
  if (t.coding != TensorCoding::integer_rows)
    throw InputError(fmt::format("{}: {} is stored as {}, expected a tensor of integers", name_, entries_[index].name,
                                 entries_[index].coding));
  return t;
}

void OpenedArtifact::require_tokens(std::span<const int32_t> tokens) const {
  if (tokens.empty() || tokens.size() > kMostTokens)
    throw InputError(fmt::format("{}: {} tokens, expected 1 to {}", name_, tokens.size(), kMostTokens));
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] < 0 || tokens[i] >= model_.model.vocab)
      throw InputError(fmt::format("{}: token {} is {}, expected 0 to {}", name_, i, tokens[i], model_.model.vocab - 1));
}

Decoder OpenedArtifact::decoder(int64_t length) {
  if (executor_ == nullptr) {
    auto packed = std::make_unique<PackedWeights>(model_, queue_.pool());
    executor_ = std::make_unique<PackedExecutor>(*packed, queue_);
    packed_ = std::move(packed);
  }
  return {recipe_, packed_->params(), 1, length, {.looped = recipe_.model.loop.count > 0 && model_.looped}, *executor_};
}

void OpenedArtifact::logits(std::span<const int32_t> tokens, float* out) {
  require_tokens(tokens);
  const Turn turn(*this);
  Decoder model = decoder(static_cast<int64_t>(tokens.size()));
  for (const int32_t token : tokens) {
    model.step({&token, 1});
    out = std::copy_n(model.logits(0).data(), vocab(), out);
  }
}

std::unique_ptr<Tokenizer> OpenedArtifact::checked(Tokenizer tokenizer) const {
  if (tokenizer.vocab() > model_.model.vocab)
    throw InputError(fmt::format("{}: {} pieces, but the model of {} has {} tokens", tokenizer.name(), tokenizer.vocab(), name_,
                                 model_.model.vocab));
  require_same(tokenizer_identity(tokenizer.names(), tokenizer.name()), tokenizer_identity({model_.tokenizer}, name_),
               "expected the tokenizer of the shards it was trained on");
  return std::make_unique<Tokenizer>(std::move(tokenizer));
}

void OpenedArtifact::set_tokenizer(const std::filesystem::path& path) {
  auto tokenizer = checked(Tokenizer::load(path));
  const std::lock_guard lock(reading_text_);
  tokenizer_ = std::move(tokenizer);
}

const Tokenizer& OpenedArtifact::tokenizer() {
  const std::lock_guard lock(reading_text_);
  if (tokenizer_ == nullptr && model_.tokenizer_model.empty())
    throw InputError(name_ + ": carries no tokenizer; expected one to be set (tokenizer.model lies beside the run's shards)");
  if (tokenizer_ == nullptr) tokenizer_ = checked(Tokenizer::from_bytes(model_.tokenizer_model, name_));
  return *tokenizer_;
}

std::vector<int> OpenedArtifact::encode(std::string_view text) { return encode_text(tokenizer(), text); }

std::vector<int32_t> OpenedArtifact::write(const TextRequest& request, const TellText& tell) {
  const Tokenizer& of_text = tokenizer();
  const Turn turn(*this);
  return write_text(
      of_text, recipe_, [this](int64_t length) { return decoder(length); }, request, tell);
}

std::vector<int32_t> OpenedArtifact::go_on(std::vector<int32_t> tokens, const TextRequest& request) {
  require_tokens(tokens);
  const Turn turn(*this);
  SampleOptions options = request.sample;
  options.stop = kBosId;
  const auto most = static_cast<int64_t>(tokens.size()) + options.tokens;
  Decoder model = decoder(text_window(recipe_, request.context, most));
  return sample(model, std::move(tokens), options);
}

}  // namespace fairway
