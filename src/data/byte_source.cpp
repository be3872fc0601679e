#include "data/byte_source.h"

#include <fmt/core.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace fairway::data {
namespace {

constexpr size_t kInputBytes = 1 << 17;
constexpr uint64_t kMaxDecoderBytes = uint64_t{512} << 20;  // xz -9 needs 65 MiB; a window larger than this is refused

constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kCompressedNames{
    {{".gz", "gzip"}, {".xz", "xz"}, {".zst", "Zstandard"}}};

class PlainSource : public ByteSource {
 public:
  explicit PlainSource(InputFile file) : file_(std::move(file)) {}
  size_t read(char* out, size_t bytes) override { return file_.read_some(out, bytes); }

 private:
  InputFile file_;
};

// What the three decoders share: the compressed bytes not yet used, and how they complain.
class Decoder : public ByteSource {
 protected:
  Decoder(InputFile file, const char* format) : file_(std::move(file)), format_(format), input_(kInputBytes) {}

  bool refill() {  // false at the end of the file
    begin_ = 0;
    size_ = file_.read_some(input_.data(), input_.size());
    return size_ > 0;
  }
  [[noreturn]] void fail(const char* what) const {
    throw InputError(fmt::format("{}: the {} stream is broken: {}", file_.path().string(), format_, what));
  }

  InputFile file_;
  const char* format_;
  std::vector<char> input_;
  size_t begin_ = 0, size_ = 0;
};

class GzipSource : public Decoder {
 public:
  explicit GzipSource(InputFile file) : Decoder(std::move(file), "gzip") {
    FAIRWAY_ASSERT(inflateInit2(&stream_, 15 + 16) == Z_OK, "zlib did not start");
  }
  ~GzipSource() override { inflateEnd(&stream_); }

  size_t read(char* out, size_t bytes) override {
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = static_cast<uInt>(bytes);
    while (stream_.avail_out == bytes) {
      if (stream_.avail_in == 0) {
        if (!refill()) {
          if (inside_) fail("it ends before its last block");
          return 0;
        }
        stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
        stream_.avail_in = static_cast<uInt>(size_);
      }
      inside_ = true;
      const int status = inflate(&stream_, Z_NO_FLUSH);
      if (status == Z_STREAM_END) {
        inside_ = false;
        inflateReset(&stream_);  // members may follow one another
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        fail(stream_.msg != nullptr ? stream_.msg : "its data do not decode");
      }
    }
    return bytes - stream_.avail_out;
  }

 private:
  z_stream stream_{};
  bool inside_ = false;
};

class XzSource : public Decoder {
 public:
  explicit XzSource(InputFile file) : Decoder(std::move(file), "xz") {
    FAIRWAY_ASSERT(lzma_stream_decoder(&stream_, kMaxDecoderBytes, LZMA_CONCATENATED) == LZMA_OK, "liblzma did not start");
  }
  ~XzSource() override { lzma_end(&stream_); }

  size_t read(char* out, size_t bytes) override {
    stream_.next_out = reinterpret_cast<uint8_t*>(out);
    stream_.avail_out = bytes;
    while (stream_.avail_out == bytes && !ended_) {
      if (stream_.avail_in == 0 && !file_ended_) {
        file_ended_ = !refill();
        stream_.next_in = reinterpret_cast<const uint8_t*>(input_.data());
        stream_.avail_in = size_;
      }
      switch (lzma_code(&stream_, file_ended_ ? LZMA_FINISH : LZMA_RUN)) {
        case LZMA_OK: break;
        case LZMA_STREAM_END: ended_ = true; break;
        case LZMA_BUF_ERROR: fail("it ends before its last block");
        case LZMA_MEMLIMIT_ERROR: fail("it asks for more memory than is allowed");
        default: fail("its data do not decode");
      }
    }
    return bytes - stream_.avail_out;
  }

 private:
  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool file_ended_ = false, ended_ = false;
};

class ZstdSource : public Decoder {
 public:
  explicit ZstdSource(InputFile file) : Decoder(std::move(file), "Zstandard"), context_(ZSTD_createDCtx()) {
    FAIRWAY_ASSERT(context_ != nullptr, "Zstandard did not start");
  }
  ~ZstdSource() override { ZSTD_freeDCtx(context_); }

  size_t read(char* out, size_t bytes) override {
    ZSTD_outBuffer output{out, bytes, 0};
    while (output.pos == 0) {
      if (begin_ == size_ && !flushing_ && !refill()) {
        if (inside_) fail("it ends before its last block");
        return 0;
      }
      ZSTD_inBuffer input{input_.data(), size_, begin_};
      const size_t status = ZSTD_decompressStream(context_, &output, &input);
      if (ZSTD_isError(status)) fail(ZSTD_getErrorName(status));
      begin_ = input.pos;
      inside_ = status != 0;
      flushing_ = output.pos == output.size;  // the decoder may hold more than there was room for
    }
    return output.pos;
  }

 private:
  ZSTD_DCtx* context_;
  bool inside_ = false, flushing_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> open_source(const std::filesystem::path& path) {
  InputFile file(path);
  std::array<char, 6> head{};
  const std::string_view magic(head.data(), file.read_at(head.data(), head.size(), 0));
  if (magic.starts_with("\x1F\x8B")) return std::make_unique<GzipSource>(std::move(file));
  if (magic.starts_with(std::string_view("\xFD\x37zXZ\0", 6))) return std::make_unique<XzSource>(std::move(file));
  if (magic.starts_with("\x28\xB5\x2F\xFD")) return std::make_unique<ZstdSource>(std::move(file));
  const std::string extension = path.extension().string();
  for (const auto& [name, format] : kCompressedNames)
    if (extension == name)
      throw InputError(
          fmt::format("{}: named {}, but its first bytes are not those of a {} file", path.string(), name, format));
  return std::make_unique<PlainSource>(std::move(file));
}

}  // namespace fairway::data
