// Logits and text through the C library: those of the decoder and of the program, from any thread, and never after fork().
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "generate/decoder.h"
#include "generate/packed_executor.h"
#include "library/made_artifact.h"
#include "stages/weights.h"
#include "supply/command_text.h"

namespace fairway {
namespace {

const std::vector<int32_t> kTokens{1, 17, 255, 256, 270, 299, 3, 17};

std::vector<float> logits_of(fairway_artifact* artifact) {
  std::vector<float> out(kTokens.size() * 300);
  EXPECT_EQ(fairway_logits(artifact, kTokens.data(), kTokens.size(), out.data(), out.size()), FAIRWAY_OK) << fairway_error();
  return out;
}

fairway_sampling sampled(uint64_t seed, int64_t tokens = 40) {
  fairway_sampling sampling = fairway_default_sampling();
  sampling.seed = seed, sampling.tokens = tokens;
  return sampling;
}

TEST(CLibrary, GivesTheDecodersLogits) {
  const QuantizedModel& model = made_artifact().model;
  Queue queue(1);
  const PackedWeights weights(model, queue.pool());
  PackedExecutor executor(weights, queue);
  Decoder decoder(artifact_recipe(model), weights.params(), 1, 64, {.looped = true}, executor);
  const Handle artifact = open_bytes(made_artifact().bytes, 2);
  const std::vector<float> got = logits_of(artifact.get());
  for (size_t t = 0; t < kTokens.size(); ++t) {
    decoder.step({&kTokens[t], 1});
    for (size_t v = 0; v < 300; ++v) ASSERT_EQ(got[t * 300 + v], decoder.logits(0)[v]) << t << " " << v;
  }
}

TEST(CLibrary, WritesTheTextOfTheProgram) {
  const TestFile file("text.fwy", made_artifact().bytes);
  const Handle artifact = open_bytes(made_artifact().bytes);
  for (const int seed : {1, 7}) {
    const auto told = nlohmann::json::parse(command_text("'" FAIRWAY_PROGRAM "' generate '" + file.path() +
                                                         "' --prompt 'the first wind' --tokens 40 --threads 1 --json --seed " +
                                                         std::to_string(seed)));
    EXPECT_EQ(told["text"], text_of(artifact.get(), "the first wind", sampled(static_cast<uint64_t>(seed)))) << seed;
  }
  EXPECT_NE(text_of(artifact.get(), "the", sampled(1)), text_of(artifact.get(), "the", sampled(2)));
}

TEST(CLibrary, ContinuesTokensAsItContinuesTheirText) {
  const Handle artifact = open_bytes(made_artifact().bytes);
  std::vector<int32_t> tokens(100);
  size_t count = 0;
  ASSERT_EQ(fairway_encode(artifact.get(), "the wind", 8, tokens.data(), tokens.size(), &count), FAIRWAY_OK) << fairway_error();
  ASSERT_GT(count, 0U);
  tokens.resize(count);
  tokens.insert(tokens.begin(), 1);
  const fairway_sampling sampling = sampled(3);
  std::vector<int32_t> made(40), told;
  size_t room = made.size();
  ASSERT_EQ(fairway_continue(artifact.get(), tokens.data(), tokens.size(), &sampling, made.data(), &room), FAIRWAY_OK);
  made.resize(room);
  const auto keep = [](void* context, int32_t token, const char*, size_t) {
    if (token >= 0) static_cast<std::vector<int32_t>*>(context)->push_back(token);
    return 0;
  };
  ASSERT_EQ(fairway_generate(artifact.get(), "the wind", 8, &sampling, keep, &told), FAIRWAY_OK) << fairway_error();
  EXPECT_EQ(told, made);
}

TEST(CLibrary, StopsWhereTheCallerSays) {
  const Handle artifact = open_bytes(made_artifact().bytes);
  int calls = 0;
  const auto once = [](void* context, int32_t, const char*, size_t) { return ++*static_cast<int*>(context) < 3 ? 0 : 1; };
  ASSERT_EQ(fairway_generate(artifact.get(), "the", 3, nullptr, once, &calls), FAIRWAY_OK);
  EXPECT_EQ(calls, 3);
}

TEST(CLibrary, RefusesToComputeInsideItsOwnText) {
  const Handle artifact = open_bytes(made_artifact().bytes);
  const auto again = [](void* context, int32_t, const char*, size_t) {
    float logits[300];
    const int32_t token = 1;
    EXPECT_EQ(fairway_logits(static_cast<fairway_artifact*>(context), &token, 1, logits, 300), FAIRWAY_BAD_INPUT);
    return 1;
  };
  EXPECT_EQ(fairway_generate(artifact.get(), "the", 3, nullptr, again, artifact.get()), FAIRWAY_OK) << fairway_error();
  EXPECT_NE(std::string(fairway_error()).find("computes a text already"), std::string::npos) << fairway_error();
}

TEST(CLibrary, ServesManyThreads) {
  const Handle artifact = open_bytes(made_artifact().bytes, 2);
  const std::string want = text_of(artifact.get(), "the", sampled(5, 10));
  const std::vector<float> logits = logits_of(artifact.get());
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i)
    callers.emplace_back([&, i] {
      for (int k = 0; k < 3; ++k) {
        if (i % 2 == 0)
          EXPECT_EQ(text_of(artifact.get(), "the", sampled(5, 10)), want);
        else
          EXPECT_EQ(logits_of(artifact.get()), logits);
      }
    });
  for (std::thread& caller : callers) caller.join();
}

TEST(CLibrary, TellsAChildProcessToOpenItsOwn) {
  const Handle artifact = open_bytes(made_artifact().bytes, 2);
  const pid_t child = fork();
  if (child == 0) {
    float logits[300];
    const int32_t token = 1;
    const bool refused = fairway_logits(artifact.get(), &token, 1, logits, 300) == FAIRWAY_BAD_INPUT;
    fairway_close(artifact.get());
    _exit(refused && std::string(fairway_error()).find("fork()") != std::string::npos ? 0 : 1);
  }
  int state = 0;
  ASSERT_EQ(waitpid(child, &state, 0), child);
  EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 0) << state;
}

TEST(CLibrary, TakesTheTokenizerThatFits) {
  QuantizedModel bare = made_artifact().model;
  bare.tokenizer_model.clear();
  const std::string bytes = write_artifact(bare);
  const Handle artifact = open_bytes(bytes), carrying = open_bytes(made_artifact().bytes);
  size_t count = 0;
  EXPECT_EQ(fairway_encode(artifact.get(), "the", 3, nullptr, 0, &count), FAIRWAY_BAD_INPUT);
  EXPECT_NE(std::string(fairway_error()).find("carries no tokenizer"), std::string::npos) << fairway_error();
  int left = 50;
  const auto other = [&](std::string& out) { return out = "quite another text of other words", left-- > 0; };
  const TestFile wrong("wrong.model", train_bpe(other, {.vocab = 290})), right("right.model", made_artifact().tokenizer);
  EXPECT_EQ(fairway_set_tokenizer(artifact.get(), wrong.path().c_str()), FAIRWAY_BAD_INPUT);
  EXPECT_NE(std::string(fairway_error()).find("is not the one"), std::string::npos) << fairway_error();
  ASSERT_EQ(fairway_set_tokenizer(artifact.get(), right.path().c_str()), FAIRWAY_OK) << fairway_error();
  EXPECT_EQ(text_of(artifact.get(), "the", sampled(1)), text_of(carrying.get(), "the", sampled(1)));
}

}  // namespace
}  // namespace fairway
