// What a person sees: colours where they are wanted, lines that fit the terminal, one text of help, and after Ctrl-C the
// command that goes on. With --json, errors are JSON too.
#include <gmock/gmock.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <regex>
#include <thread>

#include "app/world.h"

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

// All that the program writes to a terminal of so many columns, with further variables in its environment.
std::string on_terminal(const Args& args, int columns, const Args& variables = {}) {
  const winsize size{.ws_row = 24, .ws_col = static_cast<unsigned short>(columns), .ws_xpixel = 0, .ws_ypixel = 0};
  std::vector<std::string> words{"env", "-u", "NO_COLOR", "TERM=xterm"};
  words.insert(words.end(), variables.begin(), variables.end());
  words.emplace_back(FAIRWAY_PROGRAM);
  words.insert(words.end(), args.begin(), args.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    ::alarm(120);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  std::string text;
  char part[4096];
  for (ssize_t got = 0; (got = ::read(terminal, part, sizeof part)) > 0;) text.append(part, static_cast<size_t>(got));
  int state = 0;
  ::waitpid(child, &state, 0);
  ::close(terminal);
  EXPECT_TRUE(WIFEXITED(state)) << text;
  return text;
}

TEST(Colours, AreForTerminalsThatWantThem) {
  const std::string colour = "\x1b[1m";  // of headings
  EXPECT_THAT(on_terminal({"help", "train"}, 80), HasSubstr(colour));
  EXPECT_THAT(on_terminal({"train", "--help"}, 80), HasSubstr(colour));
  EXPECT_THAT(on_terminal({"help", "train"}, 80, {"NO_COLOR="}), HasSubstr(colour)) << "an empty NO_COLOR says nothing";
  EXPECT_THAT(on_terminal({"help", "train"}, 80, {"NO_COLOR=1"}), Not(HasSubstr("\x1b")));
  EXPECT_THAT(on_terminal({"help", "train"}, 80, {"TERM=dumb"}), Not(HasSubstr("\x1b")));
  EXPECT_THAT(on_terminal({"help", "train", "--color", "never"}, 80), Not(HasSubstr("\x1b")));
  EXPECT_THAT(on_terminal({"help", "train", "--color=always"}, 80, {"NO_COLOR=1"}), HasSubstr(colour));
  EXPECT_THAT(run_program({"help", "train"}).out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(run_program({"help", "train", "--color", "always"}).out, HasSubstr(colour));
  EXPECT_THAT(run_program({"recipe", "show", "none", "--color", "always"}).err,
              testing::StartsWith("\x1b[31mfairway:\x1b[0m "));
  const Outcome bad = run_program({"recipes", "--color", "blue"});
  EXPECT_EQ(bad.status, 2) << bad.text();
  EXPECT_THAT(bad.err, HasSubstr("blue"));
}

TEST(JsonErrors, AreOneObjectOnStandardOutput) {
  const ScratchFolder scratch;
  for (const Args& args : {Args{"trian"}, Args{"data"}, Args{"recipes", "--bogus"}, Args{"recipe", "show", "none"},
                           Args{"train", "smoke", "--data", scratch / "none", "--out", scratch / "run"}}) {
    Args asked = args;
    asked.emplace_back("--json");
    const Outcome outcome = run_program(asked);
    EXPECT_EQ(outcome.status, 2) << outcome.text();
    EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1) << outcome.text();
    const json error = json::parse(outcome.out, nullptr, false);
    ASSERT_TRUE(error.is_object()) << outcome.text();
    EXPECT_EQ(error["status"], 2);
    EXPECT_EQ("fairway: " + error["error"].get<std::string>() + "\n", outcome.err);
    EXPECT_EQ(run_program(args).out, "") << "without --json, standard output is for results";
  }
}

// One text, whichever way it is asked for, with the defaults of flags and with examples.
TEST(HelpText, IsTheSameForHelpAndForTheFlag) {
  std::vector<Args> commands{{}};
  for (size_t i = 0; i < commands.size(); ++i) {
    const Args command = commands[i];
    Args asked = command, help{"help"};
    asked.emplace_back("--help");
    help.insert(help.end(), command.begin(), command.end());
    const json told = run_json(help);
    const std::string text = run_program(help).out;
    EXPECT_EQ(run_program(asked).out, text);
    EXPECT_FALSE(told["examples"].empty()) << text;
    EXPECT_THAT(text, HasSubstr("\nexamples:\n")) << text;
    for (const json& part : told["commands"]) {
      commands.push_back(command);
      commands.back().push_back(part.get<std::string>());
    }
  }
  EXPECT_GT(commands.size(), 35U);
  EXPECT_THAT(run_program({"generate", "--help"}).out, HasSubstr("tokens to generate (default: 128)"));
}

TEST(HelpText, FitsTheTerminal) {
  for (const int columns : {60, 80, 200}) {
    std::istringstream lines(on_terminal({"run", "--help", "--color", "never"}, columns));
    bool examples = false;  // a command that can be copied is one line
    for (std::string line; std::getline(lines, line) && !examples; examples = line.starts_with("examples:"))
      EXPECT_LE(line.size(), static_cast<size_t>(std::min(columns, 100)) + 1) << line;  // "\r" ends each
  }
}

class Terminal : public testing::Test {
 protected:
  void SetUp() override { make_data(data_); }
  ScratchFolder scratch_;
  std::string data_ = scratch_ / "data", run_ = scratch_ / "run";
};

// What is left on the screen: each line as the last carriage return and erasure left it.
std::vector<std::string> left_on_screen(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream lines(std::regex_replace(text, std::regex("\r\n"), "\n"));
  for (std::string line; std::getline(lines, line);) {
    if (const size_t at = line.rfind('\r'); at != std::string::npos) line = line.substr(at + 1);
    if (const size_t at = line.find("\x1b[K"); at != std::string::npos) line.erase(at, 3);
    out.push_back(line);
  }
  return out;
}

TEST_F(Terminal, ProgressFitsAndLeavesNothingBehind) {
  for (const int columns : {50, 80, 200}) {
    const std::string run = run_ + std::to_string(columns);
    const std::string text =
        on_terminal(train_smoke(data_, run, {"--steps", "60", "--set", "train.validate_every=0"}), columns);
    EXPECT_THAT(text, HasSubstr("loss "));
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find_first_of("\r\n", at), text.size());
      std::string line = std::regex_replace(text.substr(at, end - at), std::regex("\x1b\\[K"), "");
      const bool progress = line.find(" left") != std::string::npos && line.starts_with("step ");
      const auto characters = std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; });
      if (progress) {
        EXPECT_LT(characters, columns - 2) << line << ": the terminal's ^C would scroll";
      }
      at = end + 1;
    }
    for (const std::string& line : left_on_screen(text)) {
      EXPECT_THAT(line, Not(HasSubstr(" left"))) << "a progress line stayed behind";
      EXPECT_THAT(line, Not(HasSubstr("\x1b"))) << text;
      if (line.find(scratch_.path().string()) == std::string::npos) {  // a folder's name may be of any length
        EXPECT_LE(line.size(), 80U) << line;
      }
    }
    EXPECT_THAT(left_on_screen(text), testing::Contains("results in " + run));
  }
}

std::string command_to_go_on(const std::string& err) {
  std::smatch found;
  return std::regex_search(err, found, std::regex("(?:^|\n)to go on: (.*)\n")) ? found[1].str() : "";
}

TEST_F(Terminal, CtrlCTellsTheCommandThatGoesOn) {
  const std::string odd = scratch_ / "a run's folder";
  Args args = train_smoke(data_, odd, {"--steps", "4000", "--set", "train.checkpoint_every=2"});
  const std::string latest = odd + "/checkpoint/latest.safetensors";
  // Training listens to Ctrl-C once it has written a checkpoint.
  const auto interrupted = [&](Child& child) {
    const auto written = [&] { return fs::exists(latest) ? fs::last_write_time(latest) : fs::file_time_type::min(); };
    for (const auto before = written(); child.running() && written() == before;)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    child.send(SIGINT);
    return child.wait();
  };
  Child child(args);
  const Outcome outcome = interrupted(child);
  EXPECT_EQ(outcome.status, 130) << outcome.text();
  const std::string command = command_to_go_on(outcome.err);
  EXPECT_THAT(command, HasSubstr(" --resume")) << outcome.text();
  EXPECT_THAT(command, HasSubstr("'" + scratch_.path().string() + "/a run'\\''s folder'"));
  Child as_it_stands({}, {"sh", "-c", "exec " + command, "sh"});
  const Outcome again = interrupted(as_it_stands);
  EXPECT_THAT(again.err, HasSubstr("resuming after step")) << again.text();
  EXPECT_EQ(command_to_go_on(again.err), command) << "--resume is there once";
}

// What cannot be saved half done ends at once, and the finished phases stay.
TEST_F(Terminal, CtrlCBetweenSavedPhasesTellsItToo) {
  const auto wait_for_training = [](Child& run, const std::string& folder) {
    const auto trained = [&] {
      const json ledger = json::parse(contents(folder + "/run.json"), nullptr, false);
      return ledger.is_object() && ledger["phases"].contains("train");
    };
    while (run.running() && !trained()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  };
  Child child({"run", "smoke", "--data", data_, "--out", run_, "--steps", "6"});
  wait_for_training(child, run_);
  child.send(SIGINT);
  const Outcome outcome = child.wait();
  EXPECT_EQ(outcome.signal, SIGINT) << outcome.text();
  const std::string command = command_to_go_on(outcome.err);
  ASSERT_THAT(command, HasSubstr(" --resume")) << outcome.text();
  const Outcome finished = Child({}, {"sh", "-c", command, "sh"}).wait();
  EXPECT_EQ(finished.status, 0) << finished.text();
  EXPECT_THAT(finished.err, HasSubstr("train: done before"));
  Child quiet({"run", "smoke", "--data", data_, "--out", run_ + "2", "--steps", "6", "--quiet"});
  wait_for_training(quiet, run_ + "2");
  quiet.send(SIGINT);
  EXPECT_EQ(quiet.wait().err, "");
}

TEST_F(Terminal, SpeedOfLightRefersToAPeakThatIsKept) {
  const std::string cache = scratch_ / "cache";
  const Args env{"env", "XDG_CACHE_HOME=" + cache};
  const auto told = [&](Args args) {
    args.emplace_back("--json");
    const Outcome outcome = Child(args, env).wait();
    EXPECT_EQ(outcome.status, 0) << outcome.text();
    return json::parse(outcome.out, nullptr, false);
  };
  const double measured = told({"doctor"})["peak_gflops"].get<double>();
  json kept = json::parse(contents(cache + "/fairway/peak.json"), nullptr, false);
  ASSERT_EQ(kept.size(), 1U) << kept;
  EXPECT_EQ(kept.front(), measured);
  kept.front() = 1e6;  // no processor's: whoever measures would not find it
  put_file(cache + "/fairway/peak.json", kept.dump());
  EXPECT_DOUBLE_EQ(told({"bench", "step", "--recipe", "smoke", "--seconds", "0.1"})["peak_gflops"].get<double>(), 1e6);
  const json trained = told(train_smoke(data_, run_, {"--steps", "4"}));
  EXPECT_GT(trained["speed_of_light"].get<double>(), 0);
  EXPECT_LT(trained["speed_of_light"].get<double>(), 0.01);
  EXPECT_EQ(json::parse(contents(run_ + "/machine.json"))["peak_gflops"], 1e6);
  EXPECT_EQ(told({"doctor"})["peak_gflops"], 1e6) << "a lower measurement replaces nothing";
  put_file(cache + "/fairway/peak.json", "not JSON");
  EXPECT_LT(told({"doctor"})["peak_gflops"].get<double>(), 1e6);
}

}  // namespace
