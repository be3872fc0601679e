#include "interchange/decompress.h"

#include <brotli/decode.h>
#include <fmt/core.h>
#include <lzma.h>
#include <zlib.h>

#include <algorithm>
#include <memory>

#include "base/error.h"

namespace fairway::interchange {
namespace {

constexpr std::string_view kShuffled = "BSHF";
constexpr uint64_t kLzmaMemory = uint64_t{96} << 20;  // of preset 9, whose dictionary has 64 MiB

[[noreturn]] void refuse(const std::string& where, const std::string& sentence) { throw InputError(where + ": " + sentence); }
[[noreturn]] void cut_short(const std::string& where, const char* codec) {
  refuse(where, fmt::format("the {} stream ends before its end", codec));
}

// Output that grows by doubling, never beyond the limit.
class Growing {
 public:
  Growing(uint64_t limit, std::string where) : limit_(limit), where_(std::move(where)) {}
  uint8_t* room(size_t& bytes) {
    if (used_ == out_.size()) {
      if (out_.size() >= limit_)
        refuse(where_, fmt::format("it decompresses to more than {} bytes, the limit for a file of its size", limit_));
      out_.resize(std::min<uint64_t>(limit_, std::max<uint64_t>(2 * out_.size(), 1 << 14)));
    }
    bytes = out_.size() - used_;
    return reinterpret_cast<uint8_t*>(out_.data()) + used_;
  }
  void made(size_t bytes) { used_ += bytes; }
  std::string take() {
    out_.resize(used_);
    return std::move(out_);
  }

 private:
  uint64_t limit_;
  std::string where_, out_;
  size_t used_ = 0;
};

void require_all_read(size_t left, const std::string& where, const char* codec) {
  if (left > 0) refuse(where, fmt::format("{} bytes follow the end of the {} stream", left, codec));
}

struct LzmaStream : lzma_stream {
  LzmaStream() : lzma_stream(LZMA_STREAM_INIT) {}
  LzmaStream(const LzmaStream&) = delete;
  LzmaStream& operator=(const LzmaStream&) = delete;
  ~LzmaStream() { lzma_end(this); }
};

struct InflateStream : z_stream {
  InflateStream() : z_stream{} {
    if (inflateInit(this) != Z_OK) throw WorkError("zlib could not start");
  }
  InflateStream(const InflateStream&) = delete;
  InflateStream& operator=(const InflateStream&) = delete;
  ~InflateStream() { inflateEnd(this); }
};

}  // namespace

std::string decompress_xz(std::string_view coded, uint64_t limit, const std::string& where) {
  LzmaStream stream;
  if (lzma_stream_decoder(&stream, kLzmaMemory, 0) != LZMA_OK) throw WorkError("liblzma could not start");
  stream.next_in = reinterpret_cast<const uint8_t*>(coded.data());
  stream.avail_in = coded.size();
  Growing out(limit, where);
  for (;;) {
    size_t room = 0;
    stream.next_out = out.room(room);
    stream.avail_out = room;
    const lzma_ret result = lzma_code(&stream, LZMA_FINISH);
    out.made(room - stream.avail_out);
    if (result == LZMA_STREAM_END) break;
    if (result == LZMA_BUF_ERROR) cut_short(where, "xz");
    if (result == LZMA_MEMLIMIT_ERROR) refuse(where, "the xz stream asks for a larger dictionary than preset 9 has");
    if (result != LZMA_OK) refuse(where, "the xz stream is damaged");
    if (stream.avail_in == 0 && stream.avail_out > 0) cut_short(where, "xz");
  }
  require_all_read(stream.avail_in, where, "xz");
  return out.take();
}

std::string decompress_zlib(std::string_view coded, uint64_t limit, const std::string& where) {
  InflateStream stream;
  constexpr size_t kStep = 1U << 30;  // zlib counts in 32 bits
  Growing out(limit, where);
  for (int result = Z_OK; result != Z_STREAM_END;) {
    size_t room = 0;
    stream.next_out = out.room(room);
    const auto asked = static_cast<uInt>(std::min(room, kStep)), given = static_cast<uInt>(std::min(coded.size(), kStep));
    stream.avail_out = asked;
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(coded.data()));
    stream.avail_in = given;
    result = inflate(&stream, Z_NO_FLUSH);
    coded.remove_prefix(given - stream.avail_in);
    out.made(asked - stream.avail_out);
    if (result == Z_BUF_ERROR || (result == Z_OK && coded.empty() && stream.avail_out > 0)) cut_short(where, "zlib");
    if (result != Z_OK && result != Z_STREAM_END) refuse(where, "the zlib stream is damaged");
  }
  require_all_read(coded.size(), where, "zlib");
  return out.take();
}

std::string decompress_brotli(std::string_view coded, uint64_t limit, const std::string& where) {
  const std::unique_ptr<BrotliDecoderState, decltype(&BrotliDecoderDestroyInstance)> state(
      BrotliDecoderCreateInstance(nullptr, nullptr, nullptr), BrotliDecoderDestroyInstance);
  size_t left = coded.size();
  const auto* in = reinterpret_cast<const uint8_t*>(coded.data());
  Growing out(limit, where);
  for (;;) {
    size_t room = 0;
    uint8_t* place = out.room(room);
    const size_t before = room;
    const BrotliDecoderResult result = BrotliDecoderDecompressStream(state.get(), &left, &in, &room, &place, nullptr);
    out.made(before - room);
    if (result == BROTLI_DECODER_RESULT_SUCCESS) break;
    if (result == BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT) cut_short(where, "Brotli");
    if (result == BROTLI_DECODER_RESULT_ERROR) refuse(where, "not a Brotli stream, or a damaged one");
  }
  require_all_read(left, where, "Brotli");
  return out.take();
}

bool is_shuffled(std::string_view bytes) { return bytes.starts_with(kShuffled); }

std::string unshuffled(std::string_view bytes, const std::string& where) {
  bytes.remove_prefix(kShuffled.size());
  if (bytes.empty()) refuse(where, "the byte shuffle (BSHF) ends before its stride");
  const auto stride = static_cast<uint8_t>(bytes[0]);
  bytes.remove_prefix(1);
  if (stride != 2) refuse(where, fmt::format("the byte shuffle (BSHF) has stride {}; expected 2", stride));
  std::string out(bytes.size(), '\0');
  const size_t half = (bytes.size() + 1) / 2;  // an odd length has one more byte at even places
  for (size_t i = 0; i < bytes.size(); ++i) out[i] = bytes[i % 2 == 0 ? i / 2 : half + i / 2];
  return out;
}

}  // namespace fairway::interchange
