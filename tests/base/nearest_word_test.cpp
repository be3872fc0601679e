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

TEST(NearestWord, AKeyMayLeaveOutItsTables) {
  const std::vector<std::string> keys{"model.bos",  "model.layers",    "model.value_embed.layers",
                                      "optim.clip", "optim.matrix.lr", "optim.token.lr"};
  using Keys = std::vector<std::string>;
  EXPECT_EQ(nearest_keys("lr", keys), (Keys{"optim.matrix.lr", "optim.token.lr"}));
  EXPECT_EQ(nearest_keys("optim.lrr", keys), (Keys{"optim.matrix.lr", "optim.token.lr"}));
  EXPECT_EQ(nearest_keys("matrix.lr", keys), (Keys{"optim.matrix.lr"}));
  EXPECT_EQ(nearest_keys("layrs", keys), (Keys{"model.layers"}));
  EXPECT_EQ(nearest_keys("modell.layers", keys), (Keys{"model.layers"}));
  EXPECT_EQ(nearest_keys("optim.cilp", keys), (Keys{"optim.clip"}));
  EXPECT_EQ(nearest_keys("x.y", std::span<const std::string>{}), Keys{});
  EXPECT_FALSE(nearest_keys(std::string(100000, '.'), keys).empty());
}

}  // namespace
}  // namespace fairway
