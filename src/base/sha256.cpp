#include "base/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace fairway {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  FAIRWAY_ASSERT(state_->context && EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1, "SHA-256 did not start");
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(const void* data, size_t bytes) {
  FAIRWAY_ASSERT(EVP_DigestUpdate(state_->context, data, bytes) == 1, "SHA-256 refused data");
}

std::string Sha256::hex() {
  std::array<unsigned char, 32> digest{};
  FAIRWAY_ASSERT(EVP_DigestFinal_ex(state_->context, digest.data(), nullptr) == 1, "SHA-256 did not end");
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : digest) text += {kDigits[byte >> 4], kDigits[byte & 15]};
  return text;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes.data(), bytes.size());
  return hash.hex();
}

std::string sha256_of_file(const std::filesystem::path& path) {
  const InputFile file(path);
  std::vector<char> buffer(1 << 18);
  Sha256 hash;
  for (;;) {
    const size_t got = file.read_some(buffer.data(), buffer.size());
    if (got == 0) return hash.hex();
    hash.update(buffer.data(), got);
  }
}

}  // namespace fairway
