// Which folder of src/ may include which (docs/architecture.md), which library headers may appear where, and how long
// a file may be; and where the files of an op are. The check itself is tested on small made-up files first.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "ops/all_ops.h"

namespace fairway {
namespace {

using Names = std::set<std::string>;

// Besides itself and base. Folders under ops/ are layers of their own.
const std::map<std::string, Names> kMayInclude{
    {"base", {}},
    {"tensor", {}},
    {"recipe", {"model/shape"}},
    {"model/shape", {"recipe"}},
    {"tokenizer", {}},
    {"ops", {"tensor"}},
    {"autograd", {"tensor", "ops"}},
    {"ops/ref", {"ops", "autograd"}},
    {"ops/cpu", {"tensor", "ops", "autograd"}},
    {"ops/cuda", {"tensor", "ops", "autograd"}},
    {"ops/cuda/sm90", {"ops", "ops/cuda"}},  // nobody includes it: headers beside it say when and how it is called
    {"backends", {"ops", "autograd", "ops/ref", "ops/cpu", "ops/cuda"}},
    {"comm", {"tensor"}},
    {"data", {"tensor", "recipe", "tokenizer"}},
    {"model", {"tensor", "recipe", "model/shape", "autograd"}},
    {"optim", {"recipe", "ops", "autograd", "comm", "model"}},
    {"train", {"recipe", "backends", "comm", "data", "model", "optim"}},
    {"interchange", {"recipe", "model/shape", "model"}},
    {"golden", {"recipe", "model/shape", "ops", "autograd", "backends", "model", "train"}},
    {"quant", {"recipe", "model/shape", "autograd", "backends", "comm", "model"}},
    {"artifact", {"recipe", "model/shape", "quant"}},
    {"score", {"tensor", "recipe", "tokenizer", "autograd", "backends", "comm", "model"}},
    {"generate", {"model/shape", "tokenizer", "ops", "autograd", "ops/cpu", "backends", "model", "quant"}},
    {"pack", {"recipe", "model/shape", "autograd", "comm", "data", "model", "quant", "artifact", "generate"}},
    {"textcode", {"tensor", "tokenizer", "ops", "autograd", "ops/ref", "ops/cpu", "artifact", "generate"}},
    {"audit", {"autograd", "comm", "score"}},
    {"stages",
     {"recipe", "tokenizer", "autograd", "ops/cpu", "ops/cuda", "backends", "comm", "data", "model", "train", "quant",
      "artifact", "score", "pack"}},
    {"bench",
     {"tensor", "recipe", "autograd", "ops/cpu", "ops/cuda", "backends", "data", "model", "optim", "train", "quant", "artifact",
      "score", "generate", "pack", "stages"}},
    {"analysis", {"autograd", "model", "quant", "score"}},
    {"record", {"stages"}},
    {"bundle", {}},
    {"fetch", {}},
    {"report", {"recipe", "model/shape"}},
    {"pipeline", {"recipe", "autograd", "ops/cuda", "model", "train", "stages", "analysis", "report"}},
    {"library", {"recipe", "model/shape", "tokenizer", "quant", "artifact", "generate", "stages"}},
    {"submission", {"recipe", "model/shape", "analysis", "report"}},
    {"app", {}},  // includes everything; nobody includes it
};

struct LibraryRule {
  std::string header;  // an include that starts so …
  Names places;        // … may appear only in files whose path starts with one of these
};
const std::vector<LibraryRule> kLibraries{
    {"toml++/", {"recipe/parse.cpp"}},
    {"sentencepiece", {"tokenizer/"}},
    {"openssl/", {"base/"}},
    {"CLI/", {"app/"}},
    {"curl/", {"fetch/http.cpp"}},
    {"cblas", {"ops/cpu/"}},
    {"cuda", {"ops/cuda/", "tensor/cuda_", "comm/cuda_", "comm/nccl"}},
    {"nccl", {"comm/nccl"}},
    {"mpi.h", {"comm/mpi"}},
    {"immintrin.h",
     {"ops/cpu/", "base/", "artifact/lane_kernels_avx2.cpp", "artifact/checksum_fold.cpp", "textcode/exact_avx2.cpp",
      "textcode/exact_avx512.cpp", "textcode/exact_vnni.cpp", "textcode/exact_grouped_vnni.cpp"}},
    {"arm_neon.h", {"ops/cpu/isa/", "textcode/exact_generic.cpp"}},
};
// Our own headers that open what most folders must not see.
const std::vector<LibraryRule> kDoors{
    {"data/validation.h", {"stages/", "data/"}},
};
// Calls that one file makes for all: what it guards against (deep nesting, lost output) is guarded against nowhere else.
struct CallRule {
  std::string call, instead;
  Names places;
};
const std::vector<CallRule> kCalls{
    {"json::parse(", "parse_json() of base/json.h", {"base/json.cpp", "model/safetensors.cpp"}},
    {"fmt::print(", "print_out() or print_err() of base/output.h", {}},
    {"std::cout", "print_out() of base/output.h", {"base/output.cpp"}},
    {".partial\"", "AtomicFile of base/file.h", {"base/file.cpp"}},
    {"flock(", "WriterLock of base/writer_lock.h", {"base/"}},
    {"ofstream", "AppendFile or AtomicFile of base/file.h", {"bundle/"}},
    {"ifstream",
     "read_file() or read_lines() of base/file.h",
     {"bundle/", "app/clock_limits.cpp", "app/doctor.cpp", "app/plan_run.cpp", "base/thread_pool.cpp", "bench/"}},
    {"create_director", "make_folders() of base/disk.h", {"base/disk.cpp"}},
    {"copy_file(", "write_file_atomic() of base/file.h", {}},
    {"fs::rename(", "move_file() of base/file.h", {}},
    {"fs::remove", "remove_file() of base/file.h", {"interchange/lrzip.cpp"}},  // a folder for another program
    {"filesystem::rename(", "move_file() of base/file.h", {}},
    {"filesystem::remove", "remove_file() of base/file.h", {"base/disk.cpp"}},
    {" ::open(", "disk::open() of base/disk.h", {"base/disk.cpp"}},
    {"(::open(", "disk::open() of base/disk.h", {"base/output.cpp"}},  // the null device
    {"::pread(", "disk::read_at() of base/disk.h", {"base/disk.cpp"}},
    {"::pwrite(", "disk::write_at() of base/disk.h", {"base/disk.cpp"}},
    {"fsync(", "disk::sync() of base/disk.h", {"base/disk.cpp"}},
    {"fdatasync(", "disk::sync() of base/disk.h", {}},
    {"ftruncate(", "disk::truncate() of base/disk.h", {"base/disk.cpp"}},
    {"::unlink(", "disk::remove() of base/disk.h", {"base/fault.cpp"}},
    {"steady_clock", "seconds_now() or Stopwatch of base/clock.h", {"base/clock.h"}},
    // Parameters are told apart by their rows, not by their names.
    {"\"embed.", "ParamId of model/shape/parameter_row.h", {"model/shape/parameter_row."}},
    {"\"bank.", "ParamId of model/shape/parameter_row.h", {"model/shape/parameter_row."}},
    {"\"block.", "ParamId of model/shape/parameter_row.h", {"model/shape/parameter_row."}},
    {"\"skip.", "ParamId of model/shape/parameter_row.h", {"model/shape/parameter_row."}},
    {"\"smear.", "ParamId of model/shape/parameter_row.h", {"model/shape/parameter_row.", "interchange/published_names."}},
    {"\"bigram.", "ParamId of model/shape/parameter_row.h", {"model/shape/parameter_row.", "interchange/published_names."}},
    {"\"value_embed.", "ParamId of model/shape/parameter_row.h", {"model/shape/parameter_row."}},
    {"\"lane.", "ParamId of model/shape/parameter_row.h", {"model/shape/parameter_row."}},
};
// These headers are compiled by nvcc too, which takes neither library.
const Names kPlainHeaderFolders{"tensor", "ops"};
const Names kNotInPlainHeaders{"fmt/", "nlohmann/"};

constexpr int kMaxLines = 800;

bool starts_with_any(const std::string& text, const Names& prefixes) {
  for (const std::string& prefix : prefixes) {
    if (text.starts_with(prefix)) return true;
  }
  return false;
}

// The longest folder of the table that holds the file; empty when no folder does.
std::string layer_of(const std::string& path) {
  for (std::filesystem::path folder = std::filesystem::path(path).parent_path(); !folder.empty();
       folder = folder.parent_path()) {
    if (kMayInclude.contains(folder.string())) return folder.string();
  }
  return "";
}

std::string joined(const Names& names) {
  std::string text;
  for (const std::string& name : names) text += " " + name;
  return text.empty() ? " nothing" : text;
}

// path: relative to src/. Returns one sentence for each include that breaks a rule, beginning with file:line.
std::vector<std::string> violations(const std::string& path, const std::string& text) {
  const std::string layer = layer_of(path);
  if (layer.empty()) return {path + ":1: this folder is not in the table of tests/layering/layering_test.cpp"};
  const bool plain_header = path.ends_with(".h") && kPlainHeaderFolders.contains(layer);
  std::vector<std::string> found;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    for (const CallRule& rule : kCalls) {
      if (line.find(rule.call) != std::string::npos && !starts_with_any(path, rule.places))
        found.push_back(path + ":" + std::to_string(number) + ": has " + rule.call + "; use " + rule.instead);
    }
    if (!line.starts_with("#include ")) continue;
    const size_t open = line.find_first_of("\"<"), close = line.find_last_of("\">");
    if (open == std::string::npos || close <= open) continue;
    const std::string header = line.substr(open + 1, close - open - 1);
    const std::string place = path + ":" + std::to_string(number) + ": includes " + header;
    if (line[open] == '"') {
      const std::string target = layer_of(header);
      const bool allowed =
          target == layer || (layer == "app" && !target.empty()) || target == "base" || kMayInclude.at(layer).contains(target);
      if (!allowed) found.push_back(place + "; " + layer + "/ may include base and" + joined(kMayInclude.at(layer)));
      for (const LibraryRule& rule : kDoors) {
        if (header == rule.header && !starts_with_any(path, rule.places))
          found.push_back(place + "; allowed only in" + joined(rule.places));
      }
    } else {
      for (const LibraryRule& rule : kLibraries) {
        if (header.starts_with(rule.header) && !starts_with_any(path, rule.places)) {
          found.push_back(place + "; allowed only in" + joined(rule.places));
        }
      }
      if (plain_header && starts_with_any(header, kNotInPlainHeaders)) found.push_back(place + "; nvcc compiles this header");
    }
  }
  return found;
}

std::string slurp(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool is_source(const std::filesystem::path& path) {
  static const Names kEndings{".h", ".cpp", ".cu", ".cuh", ".def", ".inl"};
  return kEndings.contains(path.extension().string());
}

const std::filesystem::path kRoot = FAIRWAY_SOURCE_DIR;

TEST(Layering, TheCheckSeesForbiddenIncludes) {
  EXPECT_EQ(violations("base/x.cpp", "#include \"base/y.h\"\n#include <vector>\n").size(), 0U);
  EXPECT_EQ(violations("train/x.cpp", "#include \"model/y.h\"\n").size(), 0U);
  EXPECT_EQ(violations("ops/cpu/isa/x.cpp", "#include \"ops/cpu/isa/y.h\"\n#include \"ops/z.h\"\n").size(), 0U);
  const auto upward = violations("tensor/x.h", "// header\n#include \"model/y.h\"\n");
  ASSERT_EQ(upward.size(), 1U);
  EXPECT_EQ(upward[0], "tensor/x.h:2: includes model/y.h; tensor/ may include base and nothing");
  EXPECT_EQ(violations("base/x.cpp", "#include \"tensor/y.h\"\n").size(), 1U);
  EXPECT_EQ(violations("ops/cpu/x.cpp", "#include \"ops/ref/y.h\"\n").size(), 1U);
  EXPECT_EQ(violations("ops/x.h", "#include \"ops/cpu/y.h\"\n").size(), 1U);
  EXPECT_EQ(violations("ops/cuda/x.cu", "#include \"ops/cuda/sm90/y.cuh\"\n").size(), 1U);
  EXPECT_EQ(violations("ops/cuda/sm90/x.cu", "#include \"ops/cuda/y.h\"\n").size(), 0U);
  EXPECT_EQ(violations("train/x.cpp", "#include \"score/y.h\"\n").size(), 1U);
  EXPECT_EQ(violations("score/x.cpp", "#include \"data/y.h\"\n").size(), 1U);
  EXPECT_EQ(violations("model/x.cpp", "#include \"app/y.h\"\n").size(), 1U);
  EXPECT_EQ(violations("model/x.cpp", "#include <cuda_runtime.h>\n").size(), 1U);
  EXPECT_EQ(violations("model/x.cpp", "#include \"y.h\"\n").size(), 1U);
  EXPECT_EQ(violations("ops/x.h", "#include <fmt/format.h>\n").size(), 1U);
  EXPECT_EQ(violations("ops/x.cpp", "#include <fmt/format.h>\n").size(), 0U);
  EXPECT_EQ(violations("train/x.cpp", "#include \"data/validation.h\"\n").size(), 1U);
  EXPECT_EQ(violations("pack/x.cpp", "#include \"data/validation.h\"\n").size(), 1U);
  EXPECT_EQ(violations("stages/x.cpp", "#include \"data/validation.h\"\n").size(), 0U);
  EXPECT_EQ(violations("report/x.cpp", "auto v = json::parse(text);\n").size(), 1U);
  EXPECT_EQ(violations("base/json.cpp", "auto v = json::parse(text);\n").size(), 0U);
  EXPECT_EQ(violations("train/x.cpp", "fmt::print(stderr, \"step\");\n").size(), 1U);
  EXPECT_EQ(violations("train/x.cpp", "std::ofstream out(path);\n").size(), 1U);
  EXPECT_EQ(violations("data/x.cpp", "fd_ = ::open(path.c_str(), O_RDONLY);\n").size(), 1U);
  EXPECT_EQ(violations("base/disk.cpp", "return ::open(path.c_str(), flags, mode);\n").size(), 0U);
  EXPECT_EQ(violations("quant/x.cpp", "if (name == \"bank.up\") {}\n").size(), 1U);
  EXPECT_EQ(violations("model/shape/parameter_row.cpp", ".name = \"bank.up\",\n").size(), 0U);
  EXPECT_EQ(violations("elsewhere/x.cpp", "\n").size(), 1U);
}

// Below src/. What a record's bundle has in place of a file counts as that file.
std::string place_of(const std::filesystem::path& file) {
  const std::string path = std::filesystem::relative(file, kRoot / "src").generic_string();
  const size_t inner = path.find("/src/");
  return path.starts_with("record/") && inner != std::string::npos ? path.substr(inner + 5) : path;
}

TEST(Layering, SourcesIncludeOnlyWhatTheyMay) {
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kRoot / "src")) {
    if (!entry.is_regular_file() || !is_source(entry.path())) continue;
    ++files;
    const std::string path = place_of(entry.path());
    for (const std::string& sentence : violations(path, slurp(entry.path()))) ADD_FAILURE() << "src/" << sentence;
  }
  EXPECT_GT(files, 10);
}

TEST(Layering, EveryPermissionIsUsed) {
  std::map<std::string, Names> used;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kRoot / "src")) {
    if (!entry.is_regular_file() || !is_source(entry.path())) continue;
    std::istringstream lines(slurp(entry.path()));
    for (std::string line; std::getline(lines, line);) {
      const size_t open = line.find('"');
      if (line.starts_with("#include \"")) used[layer_of(place_of(entry.path()))].insert(layer_of(line.substr(open + 1)));
    }
  }
  for (const auto& [layer, allowed] : kMayInclude)
    for (const std::string& other : allowed)
      EXPECT_TRUE(used[layer].contains(other))
          << layer << "/ may include " << other << "/ and does not: take it out of the table";
}

// The folders of src/CMakeLists.txt's list of this name.
Names folders_of(const std::string& list) {
  const std::string text = slurp(kRoot / "src" / "CMakeLists.txt"), begin = "set(" + list + " ";
  const size_t at = text.find(begin) + begin.size();
  std::istringstream words(text.substr(at, text.find(')', at) - at));
  Names names;
  for (std::string word; words >> word;) names.insert(word);
  return names;
}

std::string first_folder(const std::string& layer) { return layer.substr(0, layer.find('/')); }

TEST(Layering, WhatARecordNeedsIncludesNothingThatServesPeople) {
  const Names record = folders_of("record_folders"), people = folders_of("people_folders");
  EXPECT_GT(record.size(), 10U);
  EXPECT_GT(people.size(), 5U);
  for (const auto& [layer, allowed] : kMayInclude) {
    const std::string folder = first_folder(layer);
    if (folder == "app") continue;
    EXPECT_NE(record.contains(folder), people.contains(folder)) << folder << " belongs to one group of src/CMakeLists.txt";
    if (!record.contains(folder)) continue;
    for (const std::string& other : allowed)
      EXPECT_TRUE(record.contains(first_folder(other))) << layer << "/ may include " << other << "/, which no record needs";
  }
}

TEST(Layering, NoFileIsTooLong) {
  for (const char* folder : {"src", "tests", "bench", "lab", "scripts"}) {
    if (!std::filesystem::exists(kRoot / folder)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(kRoot / folder)) {
      if (!entry.is_regular_file() || !is_source(entry.path())) continue;
      const std::string text = slurp(entry.path());
      const auto lines = std::count(text.begin(), text.end(), '\n');
      const std::string path = std::filesystem::relative(entry.path(), kRoot).generic_string();
      EXPECT_LE(lines, kMaxLines) << path;
    }
  }
}

// An op's name gives its paths: what it is, its shape rule, and one file in each backend.
TEST(Layering, AnOpsNameGivesItsPaths) {
  std::vector<std::string> names;
#define FAIRWAY_OP(Op) names.emplace_back(Op::name);
#define FAIRWAY_PLAIN_OP(Op) FAIRWAY_OP(Op)
#include "ops/ops.def"
#undef FAIRWAY_OP
#undef FAIRWAY_PLAIN_OP
  EXPECT_GT(names.size(), 30U);
  for (const std::string& name : names)
    for (const std::string& file :
         {name + ".h", name + ".cpp", "ref/" + name + ".cpp", "cpu/" + name + ".cpp", "cuda/" + name + ".cu"})
      EXPECT_TRUE(std::filesystem::exists(kRoot / "src/ops" / file)) << "src/ops/" << file << " is missing";
}

}  // namespace
}  // namespace fairway
