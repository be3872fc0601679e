#include "app/text_input.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "app/named_inputs.h"
#include "base/error.h"
#include "base/file.h"
#include "textcode/text_code.h"

namespace fairway::app {

std::string read_text_input(const std::string& file, const std::string& flag) {
  if (file != "-" && !std::filesystem::exists(file))
    throw InputError(fmt::format("{} {}: no such file{}", flag, file, nearest_path(file)));
  if (file != "-") return read_file(file, textcode::kMostTextBytes);
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t count = read(STDIN_FILENO, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw InputError(fmt::format("{} -: standard input cannot be read ({})", flag, std::strerror(errno)));
    if (count == 0) return text;
    text.append(buffer, static_cast<size_t>(count));
    if (text.size() > textcode::kMostTextBytes)
      throw InputError(fmt::format("{} -: more than {} bytes on standard input", flag, textcode::kMostTextBytes));
  }
}

}  // namespace fairway::app
