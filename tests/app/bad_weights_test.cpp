// Weight files, golden cases, tokenizers and text that are not what they should be: exit status 2 and a sentence.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "app/world.h"

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

std::string with_header(const std::string& header, const std::string& data) {
  const uint64_t bytes = header.size();
  return std::string(reinterpret_cast<const char*>(&bytes), 8) + header + data;
}

struct Parts {
  json header;
  std::string data;
  std::string join() const { return with_header(header.dump(), data); }
};

Parts split(const std::string& bytes) {
  uint64_t size = 0;
  std::memcpy(&size, bytes.data(), 8);
  return {json::parse(bytes.substr(8, size)), bytes.substr(8 + size)};
}

// Ways to spoil a good file, each with what the sentence must hold.
struct Spoilt {
  std::string name, bytes;
  std::vector<std::string> says;
};

std::vector<Spoilt> spoil(const std::string& good, const std::string& tensor) {
  const Parts parts = split(good);
  Parts missing = parts, shape = parts, overlap = parts, type = parts, outside = parts, metadata = parts;
  const json entry = parts.header[tensor];
  missing.header["renamed"] = entry;
  missing.header.erase(tensor);
  const json& dims = entry["shape"];
  int64_t elements = 1;
  for (const json& size : dims) elements *= size.get<int64_t>();
  shape.header[tensor]["shape"] = {1, elements};
  overlap.header["twin"] = entry;
  type.header[tensor]["dtype"] = "F16";
  outside.header[tensor]["data_offsets"] = {0, 1ULL << 60};
  metadata.header["__metadata__"] = 5;
  return {
      {"empty", "", {"0 bytes"}},
      {"seven_bytes", "seven b", {"7 bytes"}},
      {"length", std::string(8, '\xff') + good.substr(8), {"header length"}},
      {"truncated", good.substr(0, good.size() - 3), {}},
      {"truncated_header", good.substr(0, 40), {"header length"}},
      {"longer", good + "tail", {"4 bytes after"}},
      {"not_json", with_header("{\"a\": nonsense}", ""), {"JSON"}},
      {"json_list", with_header("[1, 2]", ""), {"object"}},
      {"nested", with_header(std::string(5000, '['), ""), {"header"}},
      {"missing", missing.join(), {tensor}},
      {"shape", shape.join(), {tensor}},
      {"overlap", overlap.join(), {"overlaps"}},
      {"type", type.join(), {tensor, "F16"}},
      {"outside", outside.join(), {tensor}},
      {"metadata", metadata.join(), {"__metadata__"}},
  };
}

void expect_refused(const Args& args, const std::vector<std::string>& says) {
  const Outcome outcome = run_program(args);
  EXPECT_EQ(outcome.status, 2) << outcome.text();
  EXPECT_THAT(outcome.err, testing::StartsWith("fairway: ")) << outcome.text();
  for (const std::string& part : says) EXPECT_THAT(outcome.err, HasSubstr(part));
}

TEST(BadWeights, AreRefusedByEveryCommandThatReadsThem) {
  const ScratchFolder scratch;
  const std::string data = scratch / "data";
  make_data(data);
  ASSERT_EQ(run_program(train_smoke(data, scratch / "run", {"--steps", "2"})).status, 0);
  const std::string good = contents(scratch / "run" / "averaged.safetensors"), tokenizer = data + "/tokenizer.model";
  for (const Spoilt& bad : spoil(good, "bank.up")) {
    SCOPED_TRACE(bad.name);
    const std::string file = scratch / (bad.name + ".safetensors");
    put_file(file, bad.bytes);
    std::vector<std::string> says = bad.says;
    says.push_back(bad.name + ".safetensors");
    expect_refused({"score", file, "--recipe", "smoke", "--data", data}, says);
    expect_refused({"generate", file, "--recipe", "smoke", "--tokenizer", tokenizer, "--tokens", "2"}, says);
    expect_refused({"export", file, "--recipe", "smoke", "--out", scratch / "out.safetensors"}, says);
    expect_refused({"import", file, "--recipe", "smoke", "--out", scratch / "imported"}, says);
    EXPECT_FALSE(fs::exists(scratch / "out.safetensors"));
    EXPECT_FALSE(fs::exists(scratch / "imported"));
  }
}

std::string with_values(const std::string& good, const std::string& tensor, size_t first, size_t count, float value) {
  Parts parts = split(good);
  const auto begin = parts.header[tensor]["data_offsets"][0].get<size_t>();
  for (size_t i = first; i < first + count; ++i) std::memcpy(parts.data.data() + begin + 4 * i, &value, 4);
  return parts.join();
}

TEST(BadWeights, NoNumbersAreRefusedByTensor) {
  const ScratchFolder scratch;
  const std::string data = scratch / "data", run = scratch / "run", weights = run + "/averaged.safetensors";
  make_data(data);
  ASSERT_EQ(run_program(train_smoke(data, run, {"--steps", "2"})).status, 0);
  const std::string good = contents(weights), tokenizer = data + "/tokenizer.model";
  for (const float value : {NAN, INFINITY, -INFINITY}) {
    put_file(weights, with_values(good, "bank.up", 7, 1, value));
    const std::vector<std::string> says{"averaged.safetensors", "'bank.up'", "value 7 is", std::isnan(value) ? "nan" : "inf"};
    expect_refused({"score", run, "--data", data, "--mode", "plain"}, says);
    expect_refused({"generate", run, "--tokenizer", tokenizer, "--tokens", "2"}, says);
    expect_refused({"pack", run}, says);
    expect_refused({"quantize", run}, says);
    expect_refused({"analyze", "svd", run}, says);
    expect_refused({"audit", run, "--data", data}, says);
    const std::string imported = scratch / ("imported" + std::to_string(value));
    const Outcome told = run_program({"import", weights, "--recipe", "smoke", "--out", imported});  // theirs to look into
    EXPECT_EQ(told.status, 0) << told.text();
    for (const char* part : {"warning", "averaged.safetensors", "bank.up: value 7 is"}) EXPECT_THAT(told.err, HasSubstr(part));
    expect_refused({"score", imported, "--data", data, "--mode", "plain"}, says);
  }
}

// Finite weights whose products are not: there is no score, and none is printed.
TEST(BadWeights, AScoreThatIsNoNumberIsAFailure) {
  const ScratchFolder scratch;
  const std::string data = scratch / "data", run = scratch / "run", weights = run + "/averaged.safetensors";
  make_data(data);
  ASSERT_EQ(run_program(train_smoke(data, run, {"--steps", "2"})).status, 0);
  const std::string up = with_values(contents(weights), "bank.up", 0, 64, 3e38f);
  put_file(weights, with_values(up, "bank.down", 0, 64, 3e38f));
  for (const Args& more : {Args{"--mode", "plain"}, Args{"--mode", "sliding"}, Args{"--ladder"}}) {
    Args args{"score", run, "--data", data, "--json", "--out", scratch / "scored"};
    args.insert(args.end(), more.begin(), more.end());
    const Outcome outcome = run_program(args);
    EXPECT_EQ(outcome.status, 1) << outcome.text();
    EXPECT_FALSE(nlohmann::json::parse(outcome.out).contains("val_bpb")) << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr("diverged"));
    EXPECT_TRUE(fs::is_empty(scratch / "scored"));
  }
}

TEST(BadWeights, NamesAndPlacesAreRefused) {
  const ScratchFolder scratch;
  const std::string data = scratch / "data", run = scratch / "run", weights = run + "/averaged.safetensors";
  make_data(data);
  ASSERT_EQ(run_program(train_smoke(data, run, {"--steps", "2"})).status, 0);
  fs::create_directories(scratch / "hollow");
  fs::create_directories(scratch / "unfinished");
  fs::copy(run + "/recipe.toml", scratch / "unfinished");
  put_file(scratch / "garbage.model", std::string(500, '\x93'));
  put_file(scratch / "plain", "text");
  const std::string garbage = scratch / "garbage.model", model = data + "/tokenizer.model", out = scratch / "out.safetensors";
  expect_refused({"score", scratch / "none", "--data", data}, {"none"});
  expect_refused({"score", weights, "--data", data}, {"--recipe"});
  expect_refused({"export", weights, "--recipe", "pr726", "--out", out}, {"averaged.safetensors"});
  expect_refused({"score", scratch / "hollow", "--data", data}, {"hollow", "without a run"});
  expect_refused({"score", scratch / "unfinished", "--data", data}, {"unfinished", "averaged.safetensors"});
  expect_refused({"score", run, "--data", scratch / "hollow"}, {"hollow"});
  expect_refused({"score", run, "--data", scratch / "nowhere"}, {"nowhere"});
  expect_refused({"score", run, "--data", data, "--context", "100000"}, {"100000"});
  expect_refused({"score", run, "--data", data, "--tokens", "3"}, {"64"});
  expect_refused({"score", run, "--data", data, "--tokens", "-3"}, {"--tokens", "-3"});
  expect_refused({"generate", run, "--tokenizer", garbage}, {"garbage.model"});
  expect_refused({"generate", run, "--tokenizer", scratch / "hollow"}, {"hollow"});
  expect_refused({"generate", run, "--tokenizer", model, "--tokens", "0"}, {"--tokens"});
  expect_refused({"generate", run, "--tokenizer", model, "--prompt", "\xff\xfe", "--seed", "-1"}, {"--seed"});
  expect_refused({"export", run, "--out", scratch / "nowhere" / "w.safetensors"}, {"nowhere"});
  expect_refused({"export", run, "--out", scratch / "hollow"}, {"hollow"});
  expect_refused({"import", weights, "--recipe", "smoke", "--out", run}, {"already holds a run"});
  expect_refused({"import", weights, "--recipe", "smoke", "--out", scratch / "plain"}, {"plain"});
  expect_refused({"import", weights, "--recipe", "demo", "--out", scratch / "imported"}, {"averaged.safetensors"});
  expect_refused({"golden", weights}, {"averaged.safetensors", "golden"});
  EXPECT_FALSE(fs::exists(out));
}

TEST(BadGolden, CasesAreRefused) {
  const Path source = Path(FAIRWAY_SOURCE_DIR) / "tests" / "golden" / "pr726_tiny.safetensors";
  const std::string good = contents(source);
  if (good.empty()) GTEST_SKIP() << source << " is not here";
  const ScratchFolder scratch;
  for (const Spoilt& bad : spoil(good, "param.bank.up")) {
    SCOPED_TRACE(bad.name);
    put_file(scratch / (bad.name + ".safetensors"), bad.bytes);
    std::vector<std::string> says = bad.says;
    says.push_back(bad.name + ".safetensors");
    expect_refused({"golden", scratch / (bad.name + ".safetensors")}, says);
  }
  const std::vector<std::pair<std::string, std::string>> numbers{
      {"NUM_HEADS", "3"},    {"NUM_HEADS", "0"},  {"NUM_KV_HEADS", "-1"}, {"VOCAB_SIZE", "1e300"},
      {"MODEL_DIM", "nan"},  {"MLP_MULT", "nan"}, {"MLP_MULT", "1e30"},   {"MLP_MULT", "-2"},
      {"NUM_LAYERS", "one"}, {"ROPE_DIMS", "7"},  {"VE_LAYERS", "0,99"}};
  for (const auto& [key, value] : numbers) {
    SCOPED_TRACE(key + " = " + value);
    Parts parts = split(good);
    if (!parts.header["__metadata__"].contains(key)) continue;
    parts.header["__metadata__"][key] = value;
    put_file(scratch / "odd.safetensors", parts.join());
    expect_refused({"golden", scratch / "odd.safetensors"}, {"odd.safetensors"});
  }
}

TEST(BadText, IsRefusedByTheDataCommands) {
  const ScratchFolder scratch;
  const std::string data = scratch / "data", model = data + "/tokenizer.model", out = scratch / "shards";
  make_data(data);
  put_file(scratch / "empty.txt", "");
  put_file(scratch / "bad.jsonl", "{\"text\": \"one\"}\n{\"text\": \n");
  put_file(scratch / "field.jsonl", "{\"body\": \"one\"}\n");
  put_file(scratch / "garbage.model", std::string(500, '\x93'));
  put_file(scratch / "plain", "text");
  const auto tokenize = [&](const std::string& in) -> Args {
    return {"data", "tokenize", in, "--tokenizer", model, "--out", out};
  };
  expect_refused(tokenize(scratch / "none.txt"), {"none.txt"});
  expect_refused(tokenize(data), {"data"});
  expect_refused(tokenize(scratch / "bad.jsonl"), {"bad.jsonl", "line 2"});
  put_file(scratch / "latin.txt", "fine\nna\xEFve\n");
  expect_refused(tokenize(scratch / "latin.txt"), {"latin.txt", "UTF-8"});
  put_file(scratch / "cut.txt.gz", std::string("\x1F\x8B\x08\0\0\0\0\0\0\3\x4B", 11));
  expect_refused(tokenize(scratch / "cut.txt.gz"), {"cut.txt.gz", "gzip stream is broken"});
  put_file(scratch / "cut.txt.zst", std::string("\x28\xB5\x2F\xFD\x24", 5));
  expect_refused(tokenize(scratch / "cut.txt.zst"), {"cut.txt.zst", "Zstandard stream is broken"});
  put_file(scratch / "plain.txt.gz", "plain text\n");
  expect_refused(tokenize(scratch / "plain.txt.gz"), {"plain.txt.gz", "gzip"});
  expect_refused(tokenize(scratch / "field.jsonl"), {"field.jsonl", "text"});
  expect_refused({"data", "tokenize", data + "/words.txt", "--tokenizer", scratch / "garbage.model", "--out", out},
                 {"garbage.model"});
  expect_refused({"data", "tokenize", data + "/words.txt", "--tokenizer", scratch / "none.model", "--out", out},
                 {"none.model"});
  expect_refused({"data", "tokenize", data + "/words.txt", "--tokenizer", model, "--out", scratch / "plain"}, {"plain"});
  expect_refused({"data", "tokenize", "--tokenizer", model, "--out", out}, {});
  expect_refused({"data", "tokenize", data + "/words.txt", "--tokenizer", model, "--out", out, "--shards", "-2"}, {"--shards"});
  expect_refused({"data", "train-tokenizer", scratch / "none.txt", "--vocab", "400", "--out", scratch / "m"}, {"none.txt"});
  expect_refused({"data", "train-tokenizer", scratch / "empty.txt", "--vocab", "400", "--out", scratch / "m"}, {"no text"});
  expect_refused({"data", "inspect", scratch / "nowhere"}, {"nowhere"});
  std::filesystem::create_directories(scratch / "cut");
  put_file(scratch / "cut" / "fineweb_train_000000.bin", std::string(500, 'x'));
  expect_refused({"data", "inspect", scratch / "cut"}, {"fineweb_train_000000.bin"});
}

}  // namespace
