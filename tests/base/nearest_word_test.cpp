#include "base/nearest_word.h"

#include <gtest/gtest.h>

#include <vector>

namespace fairway {
namespace {

TEST(NearestWord, DistanceCountsInsertedDeletedAndReplacedCharacters) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("lr", "Lr"), 1);
}

TEST(NearestWord, TheFirstOfTheNearestIsTaken) {
  EXPECT_EQ(nearest_word("warmdown", std::vector<std::string>{"floor", "warmdowns"}), "warmdowns");
  EXPECT_EQ(nearest_word("ab", std::vector<std::string>{"ac", "ad"}), "ac");
  EXPECT_EQ(nearest_word("x", std::span<const std::string>{}), "");
}

}  // namespace
}  // namespace fairway
