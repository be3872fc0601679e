// Recipes that take over another one's keys: which keys win, where paths are looked for, and what errors name.
#include <gmock/gmock.h>

#include "base/error.h"
#include "data/scratch_folder.h"
#include "recipe/recipe.h"

namespace fairway {
namespace {

using testing::HasSubstr;

class Extends : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((scratch_ / name).parent_path());
    put_file(scratch_ / name, text);
    return (scratch_ / name).string();
  }
  static std::string refusal(const std::string& path) {
    try {
      (void)load_recipe(path);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }
  ScratchFolder scratch_;
};

TEST_F(Extends, KeysOfTheFileChangeTheOthers) {
  const Recipe base = load_recipe("pr1105");
  const Recipe mine = load_recipe(file("mine.toml", "extends = \"pr1105\"\n[optim.matrix]\nlr = 0.5\n"));
  Recipe want = base;
  want.optim.matrix.lr = 0.5;
  EXPECT_TRUE(mine == want);
  EXPECT_NE(base.optim.matrix.lr, 0.5);
}

TEST_F(Extends, AChainIsReadFromItsEndAndPathsFromTheirOwnFolder) {
  file("base.toml", "extends = \"smoke\"\n[train]\nseed = 1\nsteps = 7\n");
  file("team/ours.toml", "extends = \"../base.toml\"\n[train]\nseed = 2\n");
  const Recipe mine = load_recipe(file("team/me/mine.toml", "extends = \"../ours.toml\"\n[optim]\nclip = 0.125\n"));
  EXPECT_EQ(mine.train.steps, 7);
  EXPECT_EQ(mine.train.seed, 2);
  EXPECT_EQ(mine.optim.clip, 0.125);
  EXPECT_TRUE(mine.model == load_recipe("smoke").model);
}

TEST_F(Extends, DocumentsAreScoredAsTheyTrainWhereNoLayerSaysOtherwise) {
  EXPECT_TRUE(load_recipe(file("a.toml", "extends = \"best\"\n")).score.documents);
  EXPECT_FALSE(load_recipe(file("b.toml", "extends = \"a.toml\"\n[score]\ndocuments = false\n")).score.documents);
}

TEST_F(Extends, ErrorsNameTheFileAndTheChain) {
  const std::string typo = file("typo.toml", "extends = \"pr11055\"\n");
  EXPECT_THAT(refusal(typo), testing::AllOf(HasSubstr("typo.toml extends "), HasSubstr("pr11055\""), HasSubstr("\"pr1105\"")));
  file("broken.toml", "[optim]\nclipp = 1\n");
  const std::string above = file("above.toml", "extends = \"broken.toml\"\n");
  EXPECT_THAT(refusal(above),
              testing::AllOf(HasSubstr("broken.toml:2"), HasSubstr("optim.clip"), HasSubstr("above.toml extends ")));
  EXPECT_THAT(refusal(file("number.toml", "extends = 3\n")),
              testing::AllOf(HasSubstr("number.toml:1: extends = 3"), HasSubstr("built-in recipe")));
  EXPECT_THAT(refusal(file("empty.toml", "extends = \"\"\n")), HasSubstr("extends = \"\""));
  EXPECT_THAT(refusal(file("folder.toml", "extends = \".\"\n")), HasSubstr("is a folder"));
}

TEST_F(Extends, ACircleIsRefused) {
  const std::string a = file("a.toml", "extends = \"b.toml\"\n"), own = file("own.toml", "extends = \"./own.toml\"\n");
  file("b.toml", "extends = \"../" + scratch_.path().filename().string() + "/a.toml\"\n");
  EXPECT_THAT(refusal(a), testing::AllOf(HasSubstr("extends itself"), HasSubstr("b.toml extends ")));
  EXPECT_THAT(refusal(own), HasSubstr("extends itself"));
  std::string last = file("x0.toml", "extends = \"smoke\"\n");
  for (int i = 1; i < 20; ++i)
    last = file("x" + std::to_string(i) + ".toml", "extends = \"x" + std::to_string(i - 1) + ".toml\"\n");
  EXPECT_THAT(refusal(last), HasSubstr("more than 16 recipes"));
}

TEST_F(Extends, ATextThatMustBeWholeMayNotExtend) {
  EXPECT_THROW((void)parse_recipe("extends = \"smoke\"\n", "recipe.toml"), InputError);
}

}  // namespace
}  // namespace fairway
