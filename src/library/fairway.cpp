// The border between the C header and our code: arguments are checked, exceptions become a status and a sentence.
#include <fairway/fairway.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "base/error.h"
#include "base/file.h"
#include "base/half.h"
#include "library/opened_artifact.h"
#include "quant/quantize_model.h"
#include "quant/step_factors.h"
#include "tokenizer/utf8.h"

struct fairway_artifact {
  fairway::OpenedArtifact opened;
};

namespace {

using namespace fairway;

thread_local std::array<char, 2048> sentence{};  // plain bytes: telling of too little memory takes none

// What is no UTF-8, in a file's name perhaps, becomes question marks.
fairway_status refused(fairway_status status, const char* text) noexcept {
  size_t end = 0;
  for (std::string_view left(text); !left.empty();) {
    const size_t size = utf8_character(left), taken = std::max<size_t>(size, 1);
    if (end + taken >= sentence.size()) break;
    std::memcpy(sentence.data() + end, size > 0 ? left.data() : "?", taken);
    end += taken, left.remove_prefix(taken);
  }
  sentence[end] = '\0';
  return status;
}

template <class Body>
fairway_status guarded(Body&& body) noexcept {
  try {
    body();
    return FAIRWAY_OK;
  } catch (const InputError& error) {
    return refused(FAIRWAY_BAD_INPUT, error.what());
  } catch (const std::bad_alloc&) {
    return refused(FAIRWAY_FAILED, "there is not enough memory");
  } catch (const std::exception& error) {
    return refused(FAIRWAY_FAILED, error.what());
  } catch (...) {
    return refused(FAIRWAY_FAILED, "something was thrown that is no error");
  }
}

template <class T>
T& given(T* pointer, const char* what) {
  if (pointer == nullptr) throw InputError(fmt::format("{}: is null, expected an address", what));
  return *pointer;
}
// An array may be null where it is empty.
template <class T>
std::span<const T> given_array(const T* values, size_t count, const char* what) {
  if (count > 0) given(values, what);
  if (count > SIZE_MAX / 2 / sizeof(T)) throw InputError(fmt::format("{}: {} of them, more than memory holds", what, count));
  return {values, count};
}
OpenedArtifact& opened(fairway_artifact* artifact) { return given(artifact, "artifact").opened; }

template <class T, class Number>
void require_range(const char* what, Number value, T least, T most) {
  if (!(value >= least && value <= most)) throw InputError(fmt::format("{}: {}, expected {} to {}", what, value, least, most));
}

void open_artifact(std::string_view bytes, std::string name, int threads, fairway_artifact** artifact) {
  require_range("threads", threads, 0, 256);
  given(artifact, "artifact");
  *artifact = new fairway_artifact{{bytes, std::move(name), threads}};
}

TextRequest request_of(const fairway_sampling* given_sampling) {
  const fairway_sampling s = given_sampling != nullptr ? *given_sampling : fairway_default_sampling();
  require_range("tokens", s.tokens, int64_t{1}, int64_t{1} << 24);
  require_range("context", s.context, int64_t{0}, int64_t{1} << 20);
  require_range("temperature", s.temperature, 0.0, 100.0);
  require_range("top_k", s.top_k, int64_t{0}, int64_t{1} << 24);
  require_range("top_p", s.top_p, 0.0, 1.0);
  TextRequest request{.context = s.context};
  request.sample.tokens = s.tokens, request.sample.temperature = s.temperature, request.sample.seed = s.seed;
  request.sample.top_k = s.top_k, request.sample.top_p = s.top_p;
  return request;
}

void put_integers(const QuantizedTensor& t, int8_t* integers, float* row_steps, float* column_steps) {
  if (integers != nullptr) std::copy(t.q.begin(), t.q.end(), integers);
  if (row_steps != nullptr) std::transform(t.scale.begin(), t.scale.end(), row_steps, from_half);
  if (column_steps == nullptr) return;
  std::fill_n(column_steps, t.cols, 1.0F);
  std::transform(t.columns.begin(), t.columns.end(), column_steps, step_factor);
}

fairway_tensor told_of(const OpenedArtifact& artifact, size_t index) {
  const OpenedArtifact::Entry& entry = artifact.entry(index);
  const QuantizedTensor& t = artifact.tensor(index);
  FAIRWAY_ASSERT(entry.shape.size() <= FAIRWAY_MOST_DIMENSIONS, entry.name + " has more dimensions than the header allows");
  fairway_tensor out{};
  out.name = entry.name.c_str(), out.role = entry.role, out.coding = entry.coding;
  out.bits = t.coding == TensorCoding::integer_rows ? t.bits : t.coding == TensorCoding::half ? 16 : 32;
  out.correction_rank = static_cast<int32_t>(t.correction.rank);
  out.dimensions = static_cast<int32_t>(entry.shape.size());
  std::fill_n(out.shape, FAIRWAY_MOST_DIMENSIONS, 1);
  std::copy(entry.shape.begin(), entry.shape.end(), out.shape);
  out.count = t.count(), out.rows = t.rows, out.cols = t.cols;
  return out;
}

}  // namespace

const char* fairway_version(void) { return FAIRWAY_VERSION; }

const char* fairway_error(void) { return sentence.data(); }

fairway_status fairway_open(const char* path, int threads, fairway_artifact** artifact) {
  return guarded([&] {
    const std::string name = &given(path, "path");
    open_artifact(read_file(name, kMostArtifactFileBytes), name, threads, artifact);
  });
}

fairway_status fairway_open_bytes(const void* bytes, size_t size, int threads, fairway_artifact** artifact) {
  return guarded([&] {
    const auto all = given_array(static_cast<const char*>(bytes), size, "bytes");
    open_artifact({all.data(), all.size()}, "bytes in memory", threads, artifact);
  });
}

void fairway_close(fairway_artifact* artifact) {
  // After fork() there is nobody to join: the child leaves it all as it is.
  if (artifact != nullptr && !artifact->opened.is_of_another_process()) delete artifact;
}

fairway_status fairway_describe(fairway_artifact* artifact, const char** json) {
  return guarded([&] { given(json, "json") = opened(artifact).description().c_str(); });
}

fairway_status fairway_tensor_count(fairway_artifact* artifact, size_t* count) {
  return guarded([&] { given(count, "count") = opened(artifact).tensors(); });
}

fairway_status fairway_tensor_at(fairway_artifact* artifact, size_t index, fairway_tensor* tensor) {
  return guarded([&] { given(tensor, "tensor") = told_of(opened(artifact), index); });
}

fairway_status fairway_tensor_index(fairway_artifact* artifact, const char* name, size_t* index) {
  return guarded([&] { given(index, "index") = opened(artifact).index_of(&given(name, "name")); });
}

fairway_status fairway_floats(fairway_artifact* artifact, size_t index, float* values, size_t count) {
  return guarded([&] {
    const QuantizedTensor& t = opened(artifact).tensor(index);
    given(values, "values");
    require_range("count", count, static_cast<size_t>(t.count()), static_cast<size_t>(t.count()));
    dequantize(t, {values, count});
  });
}

fairway_status fairway_integers(fairway_artifact* artifact, size_t index, int8_t* integers, float* row_steps,
                                float* column_steps) {
  return guarded([&] { put_integers(opened(artifact).integer_tensor(index), integers, row_steps, column_steps); });
}

fairway_status fairway_vocab(fairway_artifact* artifact, size_t* vocab) {
  return guarded([&] { given(vocab, "vocab") = opened(artifact).vocab(); });
}

fairway_status fairway_logits(fairway_artifact* artifact, const int32_t* tokens, size_t count, float* logits, size_t room) {
  return guarded([&] {
    OpenedArtifact& model = opened(artifact);
    const auto all = given_array(tokens, count, "tokens");
    given(logits, "logits");
    if (room % model.vocab() != 0 || room / model.vocab() != count)
      throw InputError(fmt::format("room: {}, expected {} tokens times {} logits", room, count, model.vocab()));
    model.logits(all, logits);
  });
}

fairway_status fairway_set_tokenizer(fairway_artifact* artifact, const char* path) {
  return guarded([&] { opened(artifact).set_tokenizer(&given(path, "path")); });
}

fairway_status fairway_encode(fairway_artifact* artifact, const char* text, size_t bytes, int32_t* tokens, size_t room,
                              size_t* count) {
  return guarded([&] {
    OpenedArtifact& model = opened(artifact);
    const auto all = given_array(text, bytes, "text");
    given(count, "count");
    if (room > 0) given(tokens, "tokens");
    const std::vector<int> ids = model.encode({all.data(), all.size()});
    *count = ids.size();
    if (ids.size() > room) throw InputError(fmt::format("room: {} tokens, the text has {}", room, ids.size()));
    std::copy(ids.begin(), ids.end(), tokens);
  });
}

fairway_sampling fairway_default_sampling(void) {
  const SampleOptions usual;
  return {usual.tokens, 0, usual.temperature, usual.top_k, usual.top_p, usual.seed};
}

fairway_status fairway_generate(fairway_artifact* artifact, const char* prompt, size_t bytes, const fairway_sampling* sampling,
                                fairway_told told, void* context) {
  return guarded([&] {
    OpenedArtifact& model = opened(artifact);
    const auto all = given_array(prompt, bytes, "prompt");
    if (told == nullptr) throw InputError("told: is null, expected a function");
    TextRequest request = request_of(sampling);
    request.prompt.assign(all.data(), all.size());
    model.write(request,
                [&](int32_t token, const std::string& text) { return told(context, token, text.data(), text.size()) == 0; });
  });
}

fairway_status fairway_continue(fairway_artifact* artifact, const int32_t* tokens, size_t count,
                                const fairway_sampling* sampling, int32_t* made, size_t* room) {
  return guarded([&] {
    OpenedArtifact& model = opened(artifact);
    const auto all = given_array(tokens, count, "tokens");
    const TextRequest request = request_of(sampling);
    given(made, "made");
    if (given(room, "room") < static_cast<size_t>(request.sample.tokens))
      throw InputError(fmt::format("room: {} tokens, {} are to be made", *room, request.sample.tokens));
    const std::vector<int32_t> out = model.go_on({all.begin(), all.end()}, request);
    std::copy(out.begin(), out.end(), made);
    *room = out.size();
  });
}
