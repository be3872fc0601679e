// Any bytes in the place of one record of a run or of a submission: refused with a sentence, or told, shown and compared. An
// input is the file's name, a line end and its bytes. The mutator changes a value anywhere in the JSON, or a byte, and seals
// receipts again. No exception of a library may come out.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "analysis/compare_runs.h"
#include "analysis/receipt_identity.h"
#include "analysis/receipt_numbers.h"
#include "base/error.h"
#include "base/rng.h"
#include "data/manifest.h"
#include "fuzz/targets.h"
#include "pipeline/ledger.h"
#include "report/challenge_log.h"
#include "report/page.h"
#include "report/run_origin.h"
#include "report/shared_documents.h"
#include "submission/check.h"
#include "submission/made_runs.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using namespace fairway;
using namespace fairway::submission;

constexpr const char* kLedger = R"({"ledger": "run", "plan": {"phases": [{"name": "train", "seconds": 5}, {"name": "pack"}],
 "budget_bytes": 100}, "phases": {"train": {"seconds": 4.5, "result": {"speed_of_light": 0.2,
 "tokens_per_second": 900}}, "pack": {"seconds": 1, "result": {"artifact_bytes": 18}}}})";
constexpr const char* kOrigin = R"({"data": "/abs/shards", "relative": "../shards", "tokenizer": "/abs/other.model",
 "from": {"path": "/a", "sha256": "00", "train_seconds": 3}, "launches": [{"command": "fairway train", "in": "/"}]})";
constexpr const char* kManifest = R"({"version": 1, "tokenizer": {"file": "tokenizer.model", "sha256": "a", "identity": "b",
 "vocab": 512}, "documents": 3, "bytes": 100, "val_documents": 1, "val_bytes": 10, "case_ops": false, "shuffle": 7, "pieces": 4,
 "document_hashes": {"name": "train_documents.hashes", "count": 3, "sha256": "c"},
 "shards": [{"name": "fineweb_train_000000.bin", "tokens": 40, "sha256": "d"}]})";
constexpr const char* kSeeds = R"({"ledger": "seeds", "seeds": [1, 2], "runs": {"seed1": {"seed": 1, "score_bpb": 1.5,
 "steps": 9}}, "statistics": {"mean": {"score_bpb": 1.5}, "sd": {"score_bpb": 0.1}}})";
constexpr const char* kSweep =
    R"({"ledger": "sweep", "results": {"rung1/trial1": {"set": ["a=1", "b=2"], "share": 0.5, "score": 2,
 "metric": "val_bpb"}, "rung2/trial1": {"set": ["a=1", "b=2"], "share": 1, "score": 1}, "rung2/trial2": {"failed": "nan"}}, "best": {"trial": 1, "set": ["a=1"],
 "run": {"score_bpb": 1.25}}})";
constexpr const char* kAnalysis = R"({"calibration": {"ece": 0.01, "bins": [[0, 1]]}, "layers": [{"name": "a", "bits": 2}]})";

// Folders of good runs and of a submission of them, for one thread.
class Made : public MadeRuns {
 public:
  Made() {
    put(run(1) / "run.json", kLedger);
    put(run(1) / "origin.json", kOrigin);
    put(run(1) / "analysis.json", kAnalysis);
    put(run(1) / "samples.json", R"([{"prompt": "The ", "text": "The end"}])");
    put(run(1) / "audit.json", R"({"legal": true, "tests": [{"id": "T1", "held": true, "detail": "d"}]})");
    put(run(1) / "ladder.json", R"({"ladder": [{"mode": "ttt", "val_bpb": 1.2, "seconds": 1}]})");
    put(run(1) / "shared_documents.json", R"({"text": "x", "shared": 0, "first": []})");
    put(run(1) / "manifest.json", kManifest);
    const fs::path out = write_good(), base = fs::exists("/dev/shm") ? "/dev/shm" : fs::temp_directory_path();
    static std::atomic<int> number{0};
    own_ = base / ("fuzz_records_" + std::to_string(::getpid()) + "_" + std::to_string(number++));
    fs::create_directories(own_);
    fs::copy(run(1), own_ / "run", fs::copy_options::recursive);
    fs::copy(out, own_ / "out", fs::copy_options::recursive);
    for (const char* member : {"seeds/seed1", "sweep/rung2/trial1"}) {
      fs::create_directories((own_ / member).parent_path());
      fs::copy(own_ / "run", own_ / member, fs::copy_options::recursive);
    }
    put(own_ / "seeds" / "seeds.json", kSeeds);
    put(own_ / "sweep" / "sweep.json", kSweep);
    for (const char* folder : {"run", "out", "seeds", "sweep"})
      for (const auto& entry : fs::directory_iterator(own_ / folder))
        if (entry.is_regular_file() && entry.path().extension() != ".safetensors" && entry.path().extension() != ".7z")
          files_[folder + ("/" + entry.path().filename().string())] = get(entry.path());
    fs::remove_all(folder_);
    folder_.clear();
  }
  ~Made() override { fs::remove_all(own_); }
  void TestBody() override {}
  const std::map<std::string, std::string>& files() const { return files_; }
  const fs::path& folder() const { return own_; }

 private:
  fs::path own_;
  std::map<std::string, std::string> files_;
};
Made& made() {
  static std::mutex one_at_a_time;  // threads are made in the same place
  thread_local std::unique_ptr<Made> own;
  if (!own) {
    const std::lock_guard guard(one_at_a_time);
    own = std::make_unique<Made>();
  }
  return *own;
}

template <class Read>
int read_by(const Read& read) {
  try {
    read();
    return 1;
  } catch (const InputError&) {
  } catch (const WorkError&) {}
  return 0;
}

// As `audit --verify` does, which explains what a library says.
void try_receipt(const fs::path& path) {
  try {
    const ordered_json receipt = ordered_json::parse(get(path));
    (void)receipt_identities(receipt, "fuzz");
    (void)wrong_numbers(receipt);
  } catch (const nlohmann::json::exception&) {}
}

int try_run(const fs::path& run, const std::string& name) {
  if (name == "receipt.json") try_receipt(run / name);
  if (name == kRecordsName) return read_by([&] { (void)read_score_records(run / name); });
  if (name == "manifest.json") return read_by([&] { (void)data::read_manifest(run); });
  int read = read_by([&] { (void)report_page(report_data(std::vector<fs::path>{run}, false)); });
  read += read_by([&] { (void)read_run_facts(run); });
  read += read_by([&] { (void)closed_log(run); });
  read += read_by([&] { (void)trained_seconds(run); });
  read += read_by([&] { (void)shared_texts(run, "x"); });
  read += read_by([&] { (void)describe("them", read_scores({run.string()})); });
  read += read_by([&] { (void)pipeline::read_ledger(run, "run"); });
  return read == 7 ? 1 : 0;
}

// The page of several runs, alone and beside one run, and their row in a folder's list.
int try_group(const fs::path& folder, const fs::path& group) {
  int read = read_by([&] { (void)report_page(report_data(std::vector<fs::path>{group}, false)); });
  read += read_by([&] { (void)report_page(report_data(std::vector<fs::path>{folder / "run", group}, false)); });
  return read + read_by([&] { (void)folder_data(folder, ""); }) == 3 ? 1 : 0;
}

constexpr const char* kOddValues[] = {"null",
                                      "true",
                                      "0",
                                      "-1",
                                      "1.5",
                                      "1e308",
                                      "-1e308",
                                      "9223372036854775807",
                                      "18446744073709551615",
                                      "\"\"",
                                      "\"a\"",
                                      "\"\\u0000\"",
                                      "[]",
                                      "{}",
                                      "[[]]",
                                      "[{}]",
                                      "{\"a\": 1}",
                                      "[1, \"a\", null]",
                                      "\"../../victim\"",
                                      "{\"\": {\"\": {}}}"};

// A value anywhere in it, each as likely.
ordered_json* any_value(ordered_json& root, Rng& rng) {
  std::vector<ordered_json*> all{&root};
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i]->is_structured())
      for (ordered_json& part : *all[i]) all.push_back(&part);
  return all[rng.below(all.size())];
}

std::string changed_json(const std::string& text, bool seal, Rng& rng) {
  ordered_json root = ordered_json::parse(text, nullptr, false);
  if (root.is_discarded()) return text;
  for (uint64_t changes = 1 + rng.below(2); changes > 0; --changes) {
    ordered_json* value = any_value(root, rng);
    const uint64_t kind = rng.below(8);
    if (kind == 0 && value->is_object() && !value->empty())
      value->erase(std::next(value->begin(), static_cast<int64_t>(rng.below(value->size()))));
    else if (kind == 1 && value->is_array() && !value->empty())
      value->push_back((*value)[rng.below(value->size())]);
    else if (kind == 2)
      *value = ordered_json(*any_value(root, rng));
    else
      *value = ordered_json::parse(kOddValues[rng.below(std::size(kOddValues))]);
  }
  if (seal && root.is_object()) {
    root.erase("sha256");
    root["sha256"] = sha256_hex(root.dump());
  }
  return root.dump();
}

std::string changed_bytes(std::string bytes) {
  const size_t size = bytes.size();
  bytes.resize(size + 64);
  bytes.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(bytes.data()), size, bytes.size()));
  return bytes;
}

// One line of it as JSON.
std::string changed_lines(const std::string& text, Rng& rng) {
  std::vector<std::string> lines;
  for (std::istringstream in(text); in;) std::getline(in, lines.emplace_back());
  std::string& line = lines[rng.below(lines.size())];
  line = changed_json(line, false, rng);
  std::string out;
  for (const std::string& one : lines) out += one + "\n";
  return out;
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t, size_t max_size, unsigned int seed) {
  Rng rng(seed);
  const auto& files = made().files();
  const auto& [name, text] = *std::next(files.begin(), static_cast<int64_t>(rng.below(files.size())));
  std::string changed = text;
  if (rng.below(8) == 0) {
    changed = changed_bytes(text);
  } else if (name.ends_with(".json")) {
    changed = changed_json(text, name.find("receipt") != std::string::npos, rng);
  } else if (name.ends_with(".jsonl")) {
    changed = changed_lines(text, rng);
  } else {
    for (uint64_t changes = 1 + rng.below(4); changes > 0; --changes) changed = changed_bytes(changed);
  }
  const std::string input = name + "\n" + changed;
  const size_t used = std::min(input.size(), max_size);
  std::memcpy(data, input.data(), used);
  return used;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = input.find('\n');
  const auto file = made().files().find(std::string(input.substr(0, end)));
  if (file == made().files().end()) return 0;
  fuzz_note.claim = 64 * size;
  const fs::path path = made().folder() / file->first;
  put(path, std::string(input.substr(end + 1)));
  if (file->first.starts_with("run/"))
    fuzz_note.accepted = try_run(made().folder() / "run", path.filename()) == 1;
  else if (!file->first.starts_with("out/"))
    fuzz_note.accepted = try_group(made().folder(), path.parent_path()) == 1;
  else
    fuzz_note.accepted = read_by([&] { (void)check_folder(made().folder() / "out"); }) == 1;
  put(path, file->second);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  for (const auto& [name, text] : made().files()) seeds.push_back(name + "\n" + text);
  return seeds;
}
