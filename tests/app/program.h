// The real program, run as a user runs it: its exit status, what it prints, and signals sent to it.
#pragma once

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

using Args = std::vector<std::string>;

struct Outcome {
  int status = -1;  // exit status; -1 when a signal ended it
  int signal = 0;
  std::string out, err;
  std::string text() const;  // for failure messages
};

// A child that runs while the test goes on. It is killed after two minutes, so that a hang fails instead of waiting for ever.
class Child {
 public:
  // `launcher` is put before the program: mpirun and its flags.
  explicit Child(const Args& args, const Args& launcher = {});
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void send(int signal) const;
  pid_t pid() const { return pid_; }
  bool running();
  Outcome wait();

 private:
  pid_t pid_ = -1;
  int out_ = -1, err_ = -1, state_ = 0;
  bool ended_ = false;
};

Outcome run_program(const Args& args);
nlohmann::json run_json(Args args);  // with --json; fails the test unless it ends with status 0 and one JSON object
