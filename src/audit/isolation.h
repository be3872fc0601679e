// T7: a score from a fresh process that is handed everything it may read and can open nothing else. Fresh, because a copy of a
// process that uses a device cannot use it; alone, because only then do the artifact's bytes explain the score.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace fairway {

struct LoneProgram {
  std::filesystem::path program;
  std::vector<std::string> arguments;
};
// Starts the program with `input` as its standard input, the root as its folder and an environment of a few variables that say
// where libraries and devices are. Returns what it answers; WorkError with its sentence when it fails.
std::string ask_lone_program(const LoneProgram& call, std::string_view input);

// The other side: reads the input to its end, closes it and answers with what `work` makes of it, or with what it throws. Ends
// with its parent. Returns the exit status.
int answer_alone(const std::function<std::string(const std::string& input)>& work);

// From now on no thread of this process can open a file or a socket or start a program. What is open stays open, as a device's
// driver needs. WorkError where the system has no such lock.
void forbid_opening();

}  // namespace fairway
