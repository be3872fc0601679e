// Any bytes as the pickle of a checkpoint, with storages beside it: refused, or every tensor can be read. The mutator puts
// opcodes and short runs of them where the generic one would only break lengths.
#include <cstring>

#include "base/error.h"
#include "base/rng.h"
#include "fuzz/published_files.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using namespace fairway::interchange;

std::string pickle_of(const std::string& file) {
  const ZipArchive archive(file, "seed");
  for (const auto& [name, entry] : archive.entries())
    if (name.ends_with("/data.pkl")) return std::string(archive.read(name, "it"));
  return {};
}

const std::array<std::string_view, 34> kPieces{"}",
                                               "]",
                                               ")",
                                               "(",
                                               "t",
                                               "\x85",
                                               "\x86",
                                               "\x87",
                                               "\x88",
                                               "\x89",
                                               "N",
                                               "Q",
                                               "R",
                                               "b",
                                               "s",
                                               "u",
                                               "a",
                                               "e",
                                               ".",
                                               "}(",
                                               "K\2",
                                               "M\0\1",
                                               "J\xFF\xFF\xFF\xFF",
                                               "\x8A\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F",
                                               "G\x7F\xF0\0\0\0\0\0\0",
                                               "q\1",
                                               "h\1",
                                               "r\0\0\1\0",
                                               "j\1\0\0\0",
                                               "X\1\0\0\0w",
                                               "X\1\0\0\0m",
                                               "ccollections\nOrderedDict\n",
                                               "ctorch._utils\n_rebuild_parameter\n",
                                               "ctorch\nCharStorage\n"};

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  fairway::Rng rng(seed);
  for (uint64_t changes = 1 + rng.below(3); changes > 0; --changes) {
    if (rng.below(2) == 0) {
      size = LLVMFuzzerMutate(data, size, max_size);
      continue;
    }
    std::string bytes(reinterpret_cast<const char*>(data), size);
    const size_t at = rng.below(bytes.size() + 1);
    std::string piece(kPieces[rng.below(kPieces.size())]);
    for (uint64_t times = rng.below(32) == 0 ? rng.below(200) : 0; times > 0; --times)
      piece += kPieces[rng.below(kPieces.size())];
    bytes.replace(at, rng.below(2) == 0 ? 0 : std::min<size_t>(piece.size(), bytes.size() - at), piece);
    size = std::min(bytes.size(), max_size);
    std::memcpy(data, bytes.data(), size);
  }
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz_note.claim = 600 * size;
  static const ZipWriter kStorages = [] {
    ZipWriter zip;
    for (const auto& [number, bytes] : {std::pair{0, 24}, {1, 32}, {2, 2}})
      zip.add("seed/data/" + std::to_string(number), std::string(static_cast<size_t>(bytes), 'x'));
    return zip;
  }();
  ZipWriter zip = kStorages;
  zip.add("seed/data.pkl", {reinterpret_cast<const char*>(data), size});
  try {
    use_all(read_weight_set(std::move(zip).finish(), "fuzz"));
    fuzz_note.accepted = true;
  } catch (const fairway::InputError&) {}
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  TorchWriter small("seed");
  small.begin_dict();
  for (const char* name : {"a", "b"}) {
    small.text(name);
    small.tensor(ElementType::f32, {name[0] == 'a' ? 6 : 8}, std::string(name[0] == 'a' ? 24 : 32, 'x'));
  }
  small.end_dict();
  const std::string first = pickle_of(std::move(small).finish());
  // As torch.save writes an OrderedDict: with `_metadata` as its state.
  const std::string ordered =
      "\x80\x02"
      "ccollections\nOrderedDict\n)Rq\1(" +
      first.substr(4, first.size() - 6) + "u}X\1" + std::string(3, '\0') + "_)sb.";
  return {first, ordered, pickle_of(state_dict())};
}
