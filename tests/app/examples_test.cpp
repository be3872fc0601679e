// Every example of `fairway help` is run as it stands, but for recipes that are too large for a test. None can rot: one that is
// neither run nor named here as left out fails.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <regex>

#include "app/world.h"
#include "base/sha256.h"
#include "fetch/loopback_server.h"

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Commands in an order in which each finds what it reads; those that are not named follow.
const std::vector<std::string> kOrder{"data train-tokenizer",
                                      "data tokenize",
                                      "data",
                                      "data inspect",
                                      "data overlap",
                                      "data fetch",
                                      "run",
                                      "train",
                                      "score",
                                      "audit",
                                      "quantize",
                                      "pack",
                                      "unpack",
                                      "export",
                                      "import",
                                      "generate",
                                      "compare",
                                      "report",
                                      "analyze",
                                      "submission",
                                      "recipes",
                                      "recipe",
                                      "recipe show",
                                      "ops",
                                      "golden",
                                      "bench",
                                      "doctor",
                                      "help",
                                      "completion",
                                      "man"};

const std::map<std::string, std::string> kLeftOut{
    {"fairway run record --data shards --out runs/eight --gpus 8", "needs eight cards"},
    {"fairway report runs/a --serve", "serves until it is stopped; tests/report does that"},
    {"fairway report runs --serve", "serves until it is stopped; tests/report does that"},
    {"fairway bench quantize runs/a --data shards --train-data shards --only int6", "scores several times, half a minute"},
    {"fairway bench ops", "multiplies large matrices, which takes minutes"},
};

// The same command at the size of a test.
std::string scaled(std::string command) {
  const std::vector<std::pair<std::string, std::string>> changes{
      {"^(fairway (run|train)) (demo|pr1105|my.toml)", "$1 smoke"},
      {"--recipe demo", "--recipe smoke"},
      {"--vocab 1024", "--vocab 512"},
      {"--seconds 150", "--steps 4"},
      {"--seconds 300", "--steps 6"},
      {"--steps 40", "--steps 4"},
      {"(fairway compare runs/s --against) pr1019", "$1 runs/s"},  // which was scored on another text
      {"(fairway bench (step|attention|loader|adapters|tilt) .*)", "$1 --seconds 0.1"},
      {"(fairway analyze .*)", "$1 --tokens 128"},
      {"(fairway quantize .*)", "$1 --tokens 512"},
      {" && man [^ ]*", ""},
  };
  for (const auto& [what, with] : changes) command = std::regex_replace(command, std::regex(what), with);
  const bool trains = command.starts_with("fairway run") || command.starts_with("fairway train");
  return trains && command.find("--steps") == std::string::npos ? command + " --steps 4" : command;
}

class Examples : public testing::Test {
 protected:
  void SetUp() override {
    put_file(folder_ / "text.txt", english_like(60000));
    std::string held_out;  // several documents, none of the training text
    for (int i = 1; i <= 20; ++i) held_out += "document " + std::to_string(i) + " " + english_like(300) + "%\n";
    put_file(folder_ / "held_out.txt", held_out);
    for (const char* text : {"essay.txt", "book.txt", "note.txt"}) put_file(folder_ / text, english_like(400));
    put_file(folder_ / "my.toml", run_program({"recipe", "show", "smoke"}).out);
    fs::create_symlink(Path(FAIRWAY_SOURCE_DIR) / "tests", folder_ / "tests");
    fs::create_directories(folder_ / ".local/share/bash-completion/completions");
    fs::create_directories(folder_ / "records");
  }

  void list_official_files(const LoopbackServer& server, const std::map<std::string, std::string>& files) const {
    json listed = json::array();
    for (const auto& [name, bytes] : files)
      listed.push_back({{"name", name}, {"bytes", bytes.size()}, {"sha256", fairway::sha256_hex(bytes)}});
    const json manifest{{"fetch", 1}, {"mirrors", {server.address("ok")}}, {"sets", {{"sp1024", {{"files", listed}}}}}};
    put_file(folder_ / "files.json", manifest.dump());
  }

  void run(const std::string& example) {
    const std::string log = (folder_ / "log").string();
    const std::string command = "cd '" + folder_.path().string() + "' && HOME=\"$PWD\" PATH='" +
                                Path(FAIRWAY_PROGRAM).parent_path().string() + "':\"$PATH\" timeout 100 sh -c '" + example +
                                "' > log 2>&1 < /dev/null";
    EXPECT_EQ(std::system(command.c_str()), 0) << example << "\n" << contents(log);
  }

  ScratchFolder folder_;
};

std::vector<std::string> commands_with_examples() {
  std::vector<std::string> out;
  const json top = run_json({"help"});
  for (const json& name : top["commands"]) {
    const json command = run_json({"help", name.get<std::string>()});
    if (!command["examples"].empty()) out.push_back(name.get<std::string>());
    for (const json& part : command["commands"])
      if (!run_json({"help", name.get<std::string>(), part.get<std::string>()})["examples"].empty())
        out.push_back(name.get<std::string>() + " " + part.get<std::string>());
  }
  return out;
}

TEST_F(Examples, AllOfThemWork) {
  std::vector<std::string> order = kOrder;
  for (const std::string& command : commands_with_examples())
    if (std::find(order.begin(), order.end(), command) == order.end()) order.push_back(command);
  std::map<std::string, std::string> official;
  for (int i = 0; i < 10; ++i) official["fineweb_train_00000" + std::to_string(i) + ".bin"] = "shard " + std::to_string(i);
  const LoopbackServer server(official);
  for (const std::string& command : order) {
    Args words{"help"};
    for (size_t at = 0, end = 0; at <= command.size(); at = end + 1) {
      end = std::min(command.find(' ', at), command.size());
      words.push_back(command.substr(at, end - at));
    }
    if (command == "data fetch") list_official_files(server, official);
    const json help = run_json(words);
    ASSERT_FALSE(help["examples"].empty()) << command;
    for (const json& example : help["examples"]) {
      if (kLeftOut.contains(example.get<std::string>())) continue;
      run(scaled(example.get<std::string>()));
    }
    if (command == "data fetch") {  // what stands for official shards from here on: shards alone, their tokenizer elsewhere
      fs::remove_all(folder_ / "official");
      fs::create_directories(folder_ / "official");
      for (const char* file : {"fineweb_train_000000.bin", "fineweb_val_000000.bin"})
        fs::copy(folder_ / "shards" / file, folder_ / "official" / file);
      fs::copy(folder_ / "tokenizer.model", folder_ / "fineweb_1024_bpe.model");
    }
    if (command == "run") {
      for (const auto& [name, seed] :
           std::map<std::string, std::string>{{"new1", "1"}, {"new2", "2"}, {"old1", "1"}, {"old2", "2"}})
        fs::create_symlink("s/seed" + seed, folder_ / "runs" / name);
      fs::create_symlink("a", folder_ / "runs" / "demo");
      fs::create_symlink("../../shards", folder_ / "runs" / "a" / "data");
    }
    if (HasFailure()) break;  // what comes later reads what failed
  }
}

}  // namespace
