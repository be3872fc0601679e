// `fairway data fetch` as a user runs it: killed and started again it goes on, interrupted it says so, and errors are
// sentences.
#include <gmock/gmock.h>

#include <csignal>

#include "app/world.h"
#include "base/sha256.h"
#include "fetch/loopback_server.h"

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

class DataFetch : public testing::Test {
 protected:
  void SetUp() override {
    write_list("files.json", {server_.address("stall")});
    const Outcome probe = run_program({"data", "fetch", "none", "--manifest", at("files.json"), "--out", at("probe")});
    if (probe.err.find("without libcurl") != std::string::npos) GTEST_SKIP() << "built without libcurl";
  }
  std::string at(const std::string& name) const { return scratch_ / name; }
  void write_list(const std::string& name, const std::vector<std::string>& mirrors) const {
    const json file{{"name", "fineweb_val_000000.bin"},
                    {"path", "v.bin"},
                    {"bytes", bytes_.size()},
                    {"sha256", fairway::sha256_hex(bytes_)}};
    put_file(scratch_ / name, json{{"fetch", 1}, {"mirrors", mirrors}, {"sets", {{"sp1024", {{"files", {file}}}}}}}.dump());
  }
  Args fetch(const Args& more = {}) const {
    Args args{"data", "fetch", "sp1024", "--manifest", at("files.json"), "--out", at("official")};
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }
  // Runs until so many bytes are on disk, then sends the signal.
  Outcome cut_off(uint64_t bytes, int signal) {
    Child child(fetch());
    const Path partial = scratch_ / "official" / ".fineweb_val_000000.bin.fetching";
    for (std::error_code error; child.running() && fs::file_size(partial, error) != bytes;) ::usleep(2000);
    child.send(signal);
    return child.wait();
  }

  ScratchFolder scratch_;
  const std::string bytes_ = std::string(9000, 'q') + "end";
  LoopbackServer server_{{{"v.bin", bytes_}, {"list.json", ""}}};
};

TEST_F(DataFetch, GoesOnAfterAKill) {
  EXPECT_EQ(cut_off(1000, SIGKILL).signal, SIGKILL);
  EXPECT_FALSE(fs::exists(scratch_ / "official" / "fineweb_val_000000.bin"));
  const Outcome stopped = cut_off(2000, SIGINT);  // the second try begins behind the first one's bytes, and waits there
  EXPECT_EQ(stopped.status, 130) << stopped.text();
  server_.release();
  const json result = run_json(fetch());
  EXPECT_EQ(result["resumed_bytes"], 2000);
  EXPECT_EQ(result["fetched_bytes"].get<size_t>() + result["resumed_bytes"].get<size_t>(), bytes_.size());
  EXPECT_EQ(contents(scratch_ / "official" / "fineweb_val_000000.bin"), bytes_);
  EXPECT_EQ(run_json(fetch())["fetched_files"], 0);
}

TEST_F(DataFetch, MirrorsOfTheCommandLineComeFirst) {
  const json result = run_json(fetch({"--mirror", server_.address("ok"), "--quiet"}));
  EXPECT_EQ(result["fetched_files"], 1);
  EXPECT_THAT(server_.asked(), testing::ElementsAre("ok/v.bin"));
}

TEST_F(DataFetch, ErrorsAreSentences) {
  const auto says = [&](const Args& args, int status, const std::string& part) {
    const Outcome outcome = run_program(args);
    EXPECT_EQ(outcome.status, status) << outcome.text();
    EXPECT_THAT(outcome.err, HasSubstr(part));
  };
  says({"data", "fetch", "sp1024", "--out", at("x")}, 2, "needs --manifest");
  says({"data", "fetch", "sp512", "--manifest", at("files.json"), "--out", at("x")}, 2, "the nearest is sp1024");
  says({"data", "fetch", "sp1024", "--manifest", server_.address("gone") + "list.json", "--out", at("x")}, 2,
       "HTTP status 404");
  says({"data", "fetch", "sp1024", "--manifest", at("absent"), "--out", at("x")}, 2, "absent");
  says(fetch({"--mirror", "ftp://x/"}), 2, "http://");
  says(fetch({"--shards", "3"}), 2, "0 training shards");
  write_list("files.json", {server_.address("gone"), server_.address("wrong")});
  says(fetch(), 1, "HTTP status 404");
  says(fetch(), 1, "SHA-256");
  write_list("files.json", {});
  says(fetch(), 2, "--mirror");
}

}  // namespace
