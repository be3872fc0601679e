// Safetensors: what is written is read back, and nothing else is believed.
#include "model/safetensors.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "base/rng.h"

namespace fairway {
namespace {

std::string with_length(uint64_t header_bytes, const std::string& rest) {
  std::string out(8, '\0');
  std::memcpy(out.data(), &header_bytes, 8);
  return out + rest;
}

std::string file_of(const std::string& header, size_t data_bytes) {
  return with_length(header.size(), header + std::string(data_bytes, '\1'));
}

std::string refusal(const std::string& bytes) {
  try {
    Safetensors::parse(bytes, "weights.safetensors");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

std::string tensor(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

std::string sample_file() {
  std::vector<float> a{1, 2, 3, 4, 5, 6};
  std::vector<int32_t> b{-7, 8, 9};
  std::vector<uint8_t> c{250};
  const std::vector<NamedTensor> tensors{{"odd", make_view(c.data(), {{1}, DType::u8})},
                                         {"a", make_view(a.data(), {{2, 3}, DType::f32})},
                                         {"b", make_view(b.data(), {{3}, DType::i32})},
                                         {"scale", make_view(a.data() + 5, {{1}, DType::f32}), true}};
  std::string bytes = safetensors_header(tensors, {{"step", "12"}, {"name", "ü \"quoted\""}});
  for (const NamedTensor& entry : tensors)
    bytes.append(reinterpret_cast<const char*>(entry.tensor.data), entry.tensor.spec.bytes());
  return bytes;
}

TEST(Safetensors, ReadsBackWhatWasWritten) {
  const Safetensors file = Safetensors::parse(sample_file(), "sample");
  EXPECT_THAT(file.metadata(), testing::ElementsAre(testing::Pair("name", "ü \"quoted\""), testing::Pair("step", "12")));
  EXPECT_EQ(file.tensors().size(), 4U);
  const Tensor a = file.get("a"), b = file.get("b"), scale = file.get("scale");
  EXPECT_EQ(a.spec, (Spec{{2, 3}, DType::f32}));
  EXPECT_THAT(std::vector<float>(a.as<float>(), a.as<float>() + 6), testing::ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(std::vector<int32_t>(b.as<int32_t>(), b.as<int32_t>() + 3), testing::ElementsAre(-7, 8, 9));
  EXPECT_EQ(scale.spec, (Spec{{1}, DType::f32}));
  EXPECT_EQ(*scale.as<float>(), 6.0f);
  EXPECT_EQ(*file.get("odd").as<uint8_t>(), 250);
  EXPECT_FALSE(file.has("c"));
  EXPECT_THROW(file.get("c"), InputError);
}

TEST(Safetensors, TensorsAreAlignedWhereverTheyLieInTheFile) {
  const Safetensors file = Safetensors::parse(sample_file(), "sample");
  for (const auto& [name, view] : file.tensors()) EXPECT_EQ(reinterpret_cast<uintptr_t>(view.data) % 8, 0U) << name;
}

TEST(Safetensors, ScalarsAreWrittenWithoutAxesAndTheHeaderIsPadded) {
  const std::string bytes = sample_file();
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), 8);
  EXPECT_EQ(header_bytes % 8, 0U);
  EXPECT_THAT(bytes, testing::HasSubstr(R"("scale":{"dtype":"F32","shape":[],)"));
  EXPECT_THAT(bytes, testing::HasSubstr(R"("a":{"dtype":"F32","shape":[2,3],"data_offsets":[1,25]})"));
}

TEST(Safetensors, SavedFilesReadBack) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / ("fairway_safetensors_" + std::to_string(::getpid()) + ".safetensors");
  float value = 2.5f;
  save_safetensors(path, {{"x", make_view(&value, {{1}, DType::f32})}}, {});
  EXPECT_EQ(*Safetensors::read(path).get("x").as<float>(), 2.5f);
  std::filesystem::remove(path);
  EXPECT_THROW(Safetensors::read(path), InputError);
}

TEST(Safetensors, AcceptsEmptyFilesEmptyTensorsAndAnyOrder) {
  EXPECT_EQ(refusal(file_of("{}", 0)), "accepted");
  EXPECT_EQ(refusal(file_of(R"({"a":)" + tensor("\"F32\"", "[0,7]", "[0,0]") + "}", 0)), "accepted");
  EXPECT_EQ(refusal(file_of(
                R"({"a":)" + tensor("\"F32\"", "[1]", "[4,8]") + R"(,"b":)" + tensor("\"F32\"", "[1]", "[0,4]") + "}", 8)),
            "accepted");
}

struct Refused {
  std::string bytes, says;
};

std::vector<Refused> refused_files() {
  const auto one = [](const std::string& entry, size_t data) { return file_of(R"({"a":)" + entry + "}", data); };
  const auto two = [](const std::string& a, const std::string& b, size_t data) {
    return file_of(R"({"a":)" + a + R"(,"b":)" + b + "}", data);
  };
  const std::string four = tensor("\"F32\"", "[1]", "[0,4]");
  return {
      {"", "too short"},
      {"1234567", "too short"},
      {with_length(100, "{}"), "header length 100"},
      {with_length(UINT64_MAX, "{}"), "header length 18446744073709551615"},
      {with_length(UINT64_MAX - 7, "{}"), "header length"},
      {with_length((100ULL << 20) + 1, std::string((100ULL << 20) + 1, ' ')), "100 MiB"},
      {file_of("", 0), "not JSON"},
      {file_of("{\"a\":", 0), "not JSON"},
      {file_of("{\"a\xff\":1}", 0), "not JSON"},
      {file_of("{\"a\":1e999}", 0), "not JSON"},
      {file_of("[]", 0), "not a JSON object"},
      {file_of("null", 0), "not a JSON object"},
      {file_of(R"({"a":)" + std::string(5000, '[') + std::string(5000, ']') + "}", 0), "nests deeper"},
      {file_of(R"({"a":)" + four + R"(,"a":)" + four + "}", 4), "key 'a' twice"},
      {file_of(R"({"":)" + four + R"(,"":)" + four + "}", 4), "key '' twice"},
      {file_of(R"({"__metadata__":{"k":"1","k":"2"}})", 0), "key 'k' twice"},
      {file_of(R"({"__metadata__":[]})", 0), "__metadata__ is not an object"},
      {file_of(R"({"__metadata__":{"step":3}})", 0), "__metadata__.step is not a string"},
      {one("7", 4), "expected dtype, shape and data_offsets"},
      {one(R"({"dtype":"F32","shape":[1]})", 4), "expected dtype, shape and data_offsets"},
      {one(tensor("\"F8\"", "[1]", "[0,4]"), 4), "dtype \"F8\""},
      {one(tensor("7", "[1]", "[0,4]"), 4), "dtype 7"},
      {one(tensor("\"F32\"", "1", "[0,4]"), 4), "shape 1 is not a list"},
      {one(tensor("\"F32\"", "[-1]", "[0,4]"), 4), "is not a list of at most four sizes"},
      {one(tensor("\"F32\"", "[1.0]", "[0,4]"), 4), "is not a list of at most four sizes"},
      {one(tensor("\"F32\"", "[1,1,1,1,1]", "[0,4]"), 4), "is not a list of at most four sizes"},
      {one(tensor("\"F32\"", "[4294967296,4294967296]", "[0,0]"), 0), "larger than the file"},
      {one(tensor("\"F32\"", "[18446744073709551615]", "[0,4]"), 4), "larger than the file"},
      {one(tensor("\"F32\"", "[0,18446744073709551615]", "[0,0]"), 0), "larger than the file"},
      {one(tensor("\"F64\"", "[2305843009213693952]", "[0,0]"), 0), "larger than the file"},  // 2⁶¹·8 wraps to 0
      {one(tensor("\"F32\"", "[1]", "[0]"), 4), "is not [begin, end]"},
      {one(tensor("\"F32\"", "[1]", "[-4,0]"), 4), "is not [begin, end]"},
      {one(tensor("\"F32\"", "[1]", "4"), 4), "is not [begin, end]"},
      {one(tensor("\"F32\"", "[1]", "[4,0]"), 4), "lie outside"},
      {one(tensor("\"F32\"", "[1]", "[0,8]"), 4), "lie outside"},
      {one(tensor("\"F32\"", "[2]", "[0,4]"), 4), "do not hold shape"},
      {two(four, four, 4), "overlaps"},
      {two(four, tensor("\"F32\"", "[1]", "[2,6]"), 6), "overlaps"},
      {two(four, tensor("\"F32\"", "[1]", "[8,12]"), 12), "leaves a hole"},
      {one(tensor("\"F32\"", "[1]", "[4,8]"), 8), "leaves a hole"},
      {one(four, 7), "3 bytes after the last tensor"},
      {file_of("{}", 1), "1 bytes after the last tensor"},
  };
}

TEST(Safetensors, RefusesWhatItCannotBelieve) {
  for (const Refused& file : refused_files()) {
    const std::string sentence = refusal(file.bytes);
    EXPECT_THAT(sentence, testing::HasSubstr(file.says)) << file.bytes.substr(0, 120);
    EXPECT_THAT(sentence, testing::StartsWith("weights.safetensors: "));
  }
}

std::string mutated(std::string bytes, Rng& rng) {
  static const std::vector<std::string> kPieces{
      "[", "]", "{", "}", "\"", ",", ":", "0", "-1", "18446744073709551615", "4294967296", "1e308", "\xff", "F64"};
  const auto count = 1 + rng.below(4);
  for (uint64_t i = 0; i < count && !bytes.empty(); ++i) {
    const size_t at = rng.below(bytes.size());
    switch (rng.below(5)) {
      case 0: bytes[at] = static_cast<char>(rng.below(256)); break;
      case 1: bytes.erase(at, 1 + rng.below(8)); break;
      case 2: bytes.insert(at, kPieces[rng.below(kPieces.size())]); break;
      case 3: bytes.replace(at, 1, kPieces[rng.below(kPieces.size())]); break;
      default: bytes[rng.below(std::min<size_t>(bytes.size(), 8))] ^= static_cast<char>(1 << rng.below(8)); break;
    }
  }
  return bytes;
}

TEST(Safetensors, MutatedFilesAreReadOrRefused) {
  Rng rng(3);
  const std::string base = sample_file();
  int accepted = 0, refused = 0;
  for (int i = 0; i < 5000; ++i) {
    try {
      const Safetensors file = Safetensors::parse(mutated(base, rng), "mutated");
      size_t sum = 0;  // every byte of every tensor is there
      for (const auto& [name, view] : file.tensors()) {
        ASSERT_GE(view.numel(), 0);
        for (size_t k = 0; k < view.spec.bytes(); ++k) sum += static_cast<size_t>(view.data[k]);
      }
      accepted += sum < SIZE_MAX ? 1 : 0;
    } catch (const InputError&) {
      ++refused;
    }
  }
  EXPECT_GT(accepted, 50);  // data bytes and metadata may change
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace fairway
