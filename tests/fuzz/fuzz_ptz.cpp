// Any bytes as a published artifact: xz, zlib, Brotli, shuffled bytes, both group containers. Brotli stands for lrzip. The
// mutator changes what is inside and compresses it again, or the words of a container, or any byte.
#include <cstring>

#include "base/error.h"
#include "base/rng.h"
#include "fuzz/published_files.h"
#include "interchange/decompress.h"
#include "interchange/group_container.h"
#include "interchange/little_endian.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using namespace fairway::interchange;

std::string unlrzip_by_brotli(std::string_view coded, uint64_t bytes, const std::string& where) {
  std::string out = decompress_brotli(coded, bytes + 1, where);
  if (out.size() != bytes) throw fairway::InputError(where + ": another size");
  return out;
}

std::string mutated(std::string bytes, fairway::Rng& rng) {
  for (uint64_t changes = rng.below(3); changes > 0; --changes) {
    const size_t size = bytes.size();
    bytes.resize(size + 64);
    bytes.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(bytes.data()), size, bytes.size()));
  }
  return bytes;
}

// The inner file of an artifact with another pickle, the zip's sums right.
std::string inner(const char* key, bool with_matrix, const std::string& more, fairway::Rng* rng) {
  const std::string file = artifact(key, with_matrix);
  const ZipArchive archive(file, "seed");
  ZipWriter writer;
  for (const auto& [name, entry] : archive.entries()) {
    std::string bytes(archive.read(name, "it"));
    if (name.ends_with("/data.pkl")) {
      bytes = bytes.substr(0, bytes.size() - 2) + more + "u.";
      if (rng != nullptr && rng->below(2) == 0) bytes = mutated(bytes, *rng);
    }
    writer.add(name, bytes);
  }
  return std::move(writer).finish();
}

std::string order_of_rows(fairway::Rng* rng) {
  std::string order;
  for (const uint16_t row : {2, 0, 3, 1}) put_number(order, row);
  return rng == nullptr ? order : mutated(order, *rng);
}

std::string first_container(fairway::Rng* rng) {
  const std::string zeros(3, '\0'), shapes = "X\1" + zeros + "s}X\x11" + zeros +
                                             "_tok_emb.weight.q](K\4K\x08\x86"
                                             "es";
  std::vector<std::string> streams(9);
  streams[0] = brotli(std::string(32, 'q'));
  streams[7] = brotli(inner("r", false, shapes, rng));
  streams[8] = brotli(order_of_rows(rng));
  std::string out = "PGRP";
  put_number(out, uint32_t{9});
  for (const std::string& stream : streams) put_number(out, static_cast<uint32_t>(stream.size()));
  for (const std::string& stream : streams) out += stream;
  return out;
}

std::string second_container(fairway::Rng* rng) {
  const std::string name = "tok_emb.weight.q", coded = brotli(std::string(32, 'q')),
                    rest = brotli(shuffled(inner("w", false, "", rng)));
  std::string out = "PGRP";
  put_number(out, uint32_t{2});
  put_number(out, uint32_t{1});
  put_number(out, static_cast<uint16_t>(name.size()));
  out += name;
  put_number(out, uint32_t{4});
  put_number(out, uint32_t{8});
  out += order_of_rows(rng);
  out += static_cast<char>(rng == nullptr ? 0 : rng->below(2));
  put_number(out, static_cast<uint32_t>(coded.size()));
  out += coded;
  put_number(out, static_cast<uint32_t>(rest.size()));
  return out + rest;
}

std::string made(uint64_t kind, fairway::Rng* rng) {
  const std::string file = kind < 4 ? inner("w", true, "", rng) : "";
  switch (kind) {
    case 0: return brotli(file);
    case 1: return brotli(shuffled(file));
    case 2: return xz(shuffled(file));
    case 3: return zlib(file);
    case 4: return first_container(rng);
    default: return second_container(rng);
  }
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  fairway::Rng rng(seed);
  std::string file(reinterpret_cast<const char*>(data), size);
  if (rng.below(4) == 0) file = made(rng.below(6), &rng);  // making one costs more than reading it
  if (rng.below(3) != 0) file = mutated(file, rng);
  const size_t used = std::min(file.size(), max_size);
  std::memcpy(data, file.data(), used);
  return used;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz_note.claim = 2 * most_decompressed(size) + 600 * size;
  try {
    use_all(read_weight_set(std::string(reinterpret_cast<const char*>(data), size), "fuzz", unlrzip_by_brotli));
    fuzz_note.accepted = true;
  } catch (const fairway::InputError&) {}
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> files;
  for (uint64_t kind = 0; kind < 6; ++kind) files.push_back(made(kind, nullptr));
  return files;
}
