// A model of text whose case was transformed is shown as ordinary text: in a run's samples, alone and side by side.
#include <gmock/gmock.h>

#include "app/world.h"

namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

TEST(CaseOperators, AreShownAsTheCapitalsTheyStandFor) {
  const ScratchFolder scratch;
  const std::string data = scratch / "data", words = scratch / "words.txt", model = scratch / "case.model",
                    run = scratch / "run", artifact = run + "/model.fwy";
  std::string text;
  for (const char c : english_like(40000)) text += c == 't' ? 'T' : c;
  put_file(words, text);
  run_json({"data", "train-tokenizer", words, "--vocab", "300", "--case-ops", "--out", model});
  run_json({"data", "tokenize", words, "--tokenizer", model, "--out", data, "--val", held_out_of(words)});
  EXPECT_EQ(json::parse(contents(data + "/manifest.json"))["case_ops"], true);  // the tokenizer says so
  const json compared = run_json({"data", "inspect", data, "--val", held_out_of(words)});
  EXPECT_EQ(compared["problems"], json::array());
  EXPECT_GT(compared["compared_byte_counts"], 1000);
  run_json({"run", "smoke", "--data", data, "--out", run, "--steps", "2", "--set", "model.vocab=300", "--prompt", "The END",
            "--threads", "2", "--quiet"});
  const auto ordinary = testing::AllOf(Not(HasSubstr("\xEE\x80\x81")), Not(HasSubstr("\xEE\x80\x82")),
                                       Not(HasSubstr("\xEE\x80\x83")), Not(HasSubstr("\xEE\x80\x84")));
  const json samples = json::parse(contents(run + "/samples.json"));
  ASSERT_EQ(samples.size(), 4U) << samples.dump();
  for (const json& sample : samples)
    for (const auto& [what, told] : sample.items()) EXPECT_THAT(told.get<std::string>(), ordinary) << what;
  const Args generate{"generate", artifact, "--tokenizer", model, "--tokens", "400", "--prompt", "The END", "--seed", "5"};
  const std::string told = run_json(generate)["text"];
  EXPECT_THAT(told, ordinary);
  EXPECT_THAT(told, testing::ContainsRegex("[A-Z]"));
  EXPECT_EQ(run_program(generate).out, "The END" + told + "\n");
  Args both = generate;
  both.insert(both.end(), {"--compare", run});
  const json pair = run_json(both);
  EXPECT_EQ(pair["text"], told);
  EXPECT_THAT(pair["other"]["text"].get<std::string>(), ordinary);
}

}  // namespace
