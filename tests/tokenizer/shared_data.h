// Where the challenge's tokenizers and texts lie, when they are on this machine at all.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>

inline std::filesystem::path shared_folder() { return std::filesystem::path(FAIRWAY_SOURCE_DIR).parent_path() / "shared"; }

#define SKIP_WITHOUT(path) \
  if (!std::filesystem::exists(path)) GTEST_SKIP() << (path) << " is not on this machine, so this is not checked here"
