// Fixed numbers of `.fwy`.
#pragma once

#include <cstdint>
#include <string_view>

namespace fairway {

inline constexpr std::string_view kMagic = "FWAY";
inline constexpr uint8_t kVersion = 4;       // as written: steps may differ by column
inline constexpr uint8_t kFirstVersion = 2;  // still read
inline constexpr uint8_t kLoopedFlag = 1, kTokenizerFlag = 2, kRecipeFlag = 4, kSegmentFlag = 8, kOwnTokenizerFlag = 16,
                         kKnownFlags = 31;
inline constexpr size_t kHashBytes = 32, kChecksumBytes = 4;
inline constexpr uint64_t kMostTextBytes = 1 << 16;  // architecture or tensor table
inline constexpr uint64_t kMostTokenizerBytes = uint64_t{1} << 24;
inline constexpr uint64_t kMostTrainLength = 1 << 24;

}  // namespace fairway
