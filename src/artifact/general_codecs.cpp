#include "artifact/general_codecs.h"

#include <brotli/decode.h>
#include <brotli/encode.h>
#include <lzma.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <memory>
#include <new>

#include "base/error.h"
#include "base/output.h"

namespace fairway {
namespace {

const uint8_t* bytes_of(std::string_view text) { return reinterpret_cast<const uint8_t*>(text.data()); }
uint8_t* bytes_of(std::string& text) { return reinterpret_cast<uint8_t*>(text.data()); }

constexpr uint32_t kLeastDictionary = 1U << 12, kMostDictionary = 1U << 26;  // of preset 9: 64 MiB
uint32_t dictionary_for(size_t bytes) {
  return static_cast<uint32_t>(std::clamp<size_t>(std::bit_ceil(bytes), kLeastDictionary, kMostDictionary));
}

// Where memory fails, the encoder ends the process without a word: it is told before.
void* told_allocation(void*, size_t bytes) {
  void* memory = std::malloc(bytes);
  if (memory == nullptr) print_err("fairway: out of memory while Brotli compresses\n");
  return memory;
}
void free_told(void*, void* memory) { std::free(memory); }

}  // namespace

std::string byte_shuffle(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for (size_t first = 0; first < 2; ++first) {
    for (size_t i = first; i < bytes.size(); i += 2) out += bytes[i];
  }
  return out;
}

std::string byte_unshuffle(std::string_view bytes) {
  std::string out(bytes.size(), '\0');
  const size_t half = (bytes.size() + 1) / 2;
  for (size_t i = 0; i < bytes.size(); ++i) out[i] = bytes[i % 2 == 0 ? i / 2 : half + i / 2];
  return out;
}

std::string brotli_encode(std::string_view bytes, BrotliEffort effort) {
  constexpr int kLittle = 5;
  const std::string shuffled = byte_shuffle(bytes);
  std::string out(BrotliEncoderMaxCompressedSize(bytes.size()) + 16, '\0');
  const std::unique_ptr<BrotliEncoderState, decltype(&BrotliEncoderDestroyInstance)> state(
      BrotliEncoderCreateInstance(told_allocation, free_told, nullptr), BrotliEncoderDestroyInstance);
  if (!state) throw std::bad_alloc();
  BrotliEncoderSetParameter(state.get(), BROTLI_PARAM_QUALITY, effort == BrotliEffort::most ? BROTLI_MAX_QUALITY : kLittle);
  BrotliEncoderSetParameter(state.get(), BROTLI_PARAM_LGWIN, BROTLI_DEFAULT_WINDOW);
  BrotliEncoderSetParameter(state.get(), BROTLI_PARAM_SIZE_HINT, static_cast<uint32_t>(shuffled.size()));
  size_t in_left = shuffled.size(), out_left = out.size();
  const uint8_t* in = bytes_of(shuffled);
  uint8_t* place = bytes_of(out);
  if (BrotliEncoderCompressStream(state.get(), BROTLI_OPERATION_FINISH, &in_left, &in, &out_left, &place, nullptr) !=
          BROTLI_TRUE ||
      BrotliEncoderIsFinished(state.get()) != BROTLI_TRUE)
    throw WorkError("Brotli could not compress " + std::to_string(bytes.size()) + " bytes");
  out.resize(out.size() - out_left);
  return out;
}

std::string brotli_decode(std::string_view coded, size_t bytes, const std::string& where) {
  const std::unique_ptr<BrotliDecoderState, decltype(&BrotliDecoderDestroyInstance)> state(
      BrotliDecoderCreateInstance(nullptr, nullptr, nullptr), BrotliDecoderDestroyInstance);
  std::string out(bytes, '\0');
  size_t in_left = coded.size(), out_left = out.size();
  const uint8_t* in = bytes_of(coded);
  uint8_t* place = bytes_of(out);
  const BrotliDecoderResult result = BrotliDecoderDecompressStream(state.get(), &in_left, &in, &out_left, &place, nullptr);
  if (result == BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT)
    throw InputError(where + "the Brotli stream holds more than the " + std::to_string(bytes) + " bytes it is to give");
  if (result == BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT) throw InputError(where + "the Brotli stream ends too early");
  if (result != BROTLI_DECODER_RESULT_SUCCESS) throw InputError(where + "not a Brotli stream");
  if (out_left != 0 || in_left != 0)
    throw InputError(where + "the Brotli stream gives " + std::to_string(bytes - out_left) + " bytes and leaves " +
                     std::to_string(in_left) + ", expected " + std::to_string(bytes) + " and none");
  return byte_unshuffle(out);
}

std::string lzma_encode(std::string_view bytes) {
  const std::string shuffled = byte_shuffle(bytes);
  lzma_options_lzma options;
  if (lzma_lzma_preset(&options, 9)) throw WorkError("LZMA preset 9 is not there");
  options.dict_size = dictionary_for(bytes.size());  // the reader allocates it
  lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, nullptr}};
  std::string out(lzma_stream_buffer_bound(bytes.size()), '\0');
  size_t size = 0;
  if (lzma_stream_buffer_encode(filters, LZMA_CHECK_NONE, nullptr, bytes_of(shuffled), shuffled.size(), bytes_of(out), &size,
                                out.size()) != LZMA_OK) {
    throw WorkError("LZMA could not compress " + std::to_string(bytes.size()) + " bytes");
  }
  out.resize(size);
  return out;
}

std::string lzma_decode(std::string_view coded, size_t bytes, const std::string& where) {
  uint64_t memory = uint64_t{dictionary_for(bytes)} + (1U << 20);
  std::string out(bytes + 1, '\0');  // liblzma takes no output buffer of size zero, and a byte too many shows
  size_t in = 0, size = 0;
  const lzma_ret result =
      lzma_stream_buffer_decode(&memory, 0, nullptr, bytes_of(coded), &in, coded.size(), bytes_of(out), &size, out.size());
  if (result == LZMA_MEMLIMIT_ERROR)
    throw InputError(where + "the LZMA stream asks for " + std::to_string(memory) + " bytes of memory, too many for " +
                     std::to_string(bytes) + " bytes of data");
  if (result == LZMA_BUF_ERROR || (result == LZMA_OK && size > bytes))
    throw InputError(where + "the LZMA stream ends too early or holds more than " + std::to_string(bytes) + " bytes");
  if (result != LZMA_OK) throw InputError(where + "not an LZMA stream");
  if (size != bytes || in != coded.size())
    throw InputError(where + "the LZMA stream gives " + std::to_string(size) + " bytes of " + std::to_string(bytes) +
                     " and leaves " + std::to_string(coded.size() - in));
  out.resize(size);
  return byte_unshuffle(out);
}

}  // namespace fairway
