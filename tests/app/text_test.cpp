// Plain text in, bits and bytes out: score --text, compress and decompress, prompts from standard input, and what tokenizers
// change.
#include <gmock/gmock.h>

#include "app/world.h"

namespace {

using namespace std::string_literals;
using nlohmann::json;
using testing::HasSubstr;

// One small run and its artifact, made once.
struct Made {
  Made() {
    make_data(data);
    if (run_program(train_smoke(data, run, {"--steps", "4"})).status != 0) std::abort();
    run_json({"pack", run, "--as-published", "--set", "quant.rule=rtn", "--out", artifact});
  }
  ScratchFolder scratch;
  std::string data = scratch / "data", run = scratch / "run", artifact = scratch / "model.fwy";
};
const Made& made() {
  static const Made world;
  return world;
}

std::string file_with(const std::string& name, const std::string& text) {
  const std::string path = made().scratch / name;
  put_file(path, text);
  return path;
}

Args on_text(const std::string& command, const Args& more) {
  Args args{command, made().artifact, "--tokenizer", made().data + "/tokenizer.model"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

// Runs the program with a file as its standard input, and with variables set before it.
int run_shell(const std::string& before, const Args& args, const std::string& input) {
  std::string line = before + " '" FAIRWAY_PROGRAM "'";
  for (const std::string& arg : args) line += " '" + arg + "'";
  return std::system((line + " < '" + input + "' > '" + (made().scratch / "out").string() + "' 2> /dev/null").c_str());
}

TEST(ScoreText, CountsEveryByteAsWritten) {
  const std::string text = "the first\twind  over\nthe sea";
  const json score = run_json(on_text("score", {"--text", file_with("a.txt", text), "--surprisal"}));
  EXPECT_EQ(score["bytes"], text.size());
  EXPECT_GT(score["tokens"], 0);
  EXPECT_LT(score["read_bytes"], text.size());
  EXPECT_EQ(score["changed_spans"], 3);
  EXPECT_EQ(score["changed_bytes"], 3);
  double bits = score["restoring_bits"];
  EXPECT_GT(bits, 0);
  std::string joined;
  for (const json& piece : score["pieces"]) joined += piece["text"], bits += piece["bits"].get<double>();
  EXPECT_EQ(joined, text);
  EXPECT_NEAR(score["val_bpb"], bits / static_cast<double>(text.size()), 1e-9);
}

TEST(ScoreText, TakesAnyBytes) {
  for (const std::string& text : {""s, "a"s, " "s, "\xFF\xFE\0\0x"s, "\xF0\x9F\x98"s}) {
    const json score =
        run_json(on_text("score", {"--text", file_with("b.txt", text), "--surprisal", "--page", made().scratch / "b.html"}));
    EXPECT_EQ(score["bytes"], text.size());
    EXPECT_TRUE(score["val_bpb"].is_number());
    EXPECT_THAT(contents(made().scratch / "b.html"), HasSubstr("</html>"));
  }
  EXPECT_EQ(run_json(on_text("score", {"--text", file_with("b.txt", "")}))["val_bpb"], 0);
}

TEST(ScoreText, ReadsStandardInputAndRunFolders) {
  const std::string file = file_with("c.txt", "the wind over the sea");
  Args args = on_text("score", {"--text", "-", "--json"});
  ASSERT_EQ(run_shell("", args, file), 0);
  const json piped = json::parse(contents(made().scratch / "out"));
  EXPECT_EQ(piped["val_bpb"], run_json(on_text("score", {"--text", file}))["val_bpb"]);
  EXPECT_EQ(piped["changed_bytes"], 0);
  args = on_text("score", {"--text", file, "--mode", "sliding", "--stride", "2"});
  args[1] = made().run;
  EXPECT_EQ(run_json(args)["packed"], false);
  ASSERT_EQ(
      run_shell(
          "", {"generate", made().artifact, "--tokenizer", made().data + "/tokenizer.model", "--prompt", "-", "--tokens", "3"},
          file),
      0);
  EXPECT_THAT(contents(made().scratch / "out"), HasSubstr("the wind over the sea"));
}

TEST(ScoreText, WarnsOfWhatItChanges) {
  const std::string code = "if x:\n\treturn\n\n    y  = 1\n\n\n";  // 28 bytes
  const Outcome told = run_program(on_text("score", {"--text", file_with("d.py", code)}));
  EXPECT_EQ(told.status, 0) << told.text();
  EXPECT_THAT(told.err, HasSubstr("of its 28 bytes"));
  EXPECT_THAT(told.out, HasSubstr("over 28 bytes"));
}

TEST(ScoreText, RefusesWhatCannotBe) {
  const std::string file = file_with("e.txt", "text");
  for (const auto& [args, says] : std::vector<std::pair<Args, std::string>>{
           {on_text("score", {"--text", file, "--data", made().data}), "--text and --data"},
           {on_text("score", {"--text", file, "--ladder"}), "--ladder"},
           {on_text("score", {"--text", file + "x"}), "e.txtx: no such file; did you mean " + file + "?"},
           {on_text("compress", {"--text", file, "--out", made().scratch / "none" / "x"}), "none"},
           {on_text("decompress", {"--in", file, "--out", made().scratch / "x"}), "not a text compressed by fairway"},
           {{"compress", made().run, "--text", file, "--out", made().scratch / "x"}, "expected an artifact"}}) {
    const Outcome outcome = run_program(args);
    EXPECT_EQ(outcome.status, 2) << outcome.text();
    EXPECT_THAT(outcome.err, HasSubstr(says));
  }
}

TEST(Compress, GivesTheBytesBackOnAnyThreadsAndInstructions) {
  const std::string text = english_like(9000) + "\r\n\t  caf\xC3\xA9 \xF0\x9F\x98\x80 \xFF\xFE\0 end  "s;
  const std::string in = file_with("f.txt", text), code = made().scratch / "f.fwt", back = made().scratch / "f.back";
  const json told = run_json(on_text("compress", {"--text", in, "--out", code, "--threads", "2"}));
  EXPECT_EQ(told["bytes_in"], text.size());
  EXPECT_EQ(told["bytes_out"], contents(code).size());
  EXPECT_NEAR(told["bits_per_byte"], 8.0 * static_cast<double>(contents(code).size()) / static_cast<double>(text.size()),
              1e-12);
  const json score = run_json(on_text("score", {"--text", in, "--mode", "plain"}));
  const double bits = score["val_bpb"].get<double>() * static_cast<double>(text.size()), header = 8 * 36;
  EXPECT_NEAR(8.0 * static_cast<double>(contents(code).size()), bits + header, 0.002 * bits + 64);
  const Args decompress = on_text("decompress", {"--in", code, "--out", back});
  for (const char* isa : {"generic", "avx2", "avx512", "neon"}) {
    std::filesystem::remove(back);
    Args args = decompress;
    args.insert(args.end(), {"--threads", isa == "generic"s ? "1" : "3"});
    if (run_shell("FAIRWAY_ISA="s + isa, args, "/dev/null") != 0 && isa != "generic"s) continue;  // not on this machine
    EXPECT_EQ(contents(back), text) << isa;
  }
  std::string damaged = contents(code);
  damaged[damaged.size() / 2] ^= 1;
  put_file(code, damaged);
  const Outcome refused = run_program(decompress);
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("f.fwt: its checksum does not hold"));
}

TEST(Compress, KeepsAnyBytesAndRefusesAnotherArtifact) {
  const std::string code = made().scratch / "g.fwt", back = made().scratch / "g.back", other = made().scratch / "other.fwy";
  for (const std::string& text : {""s, "a"s, "\0\xFF"s, "  two  "s}) {
    run_json(on_text("compress", {"--text", file_with("g.txt", text), "--out", code}));
    run_json(on_text("decompress", {"--in", code, "--out", back}));
    EXPECT_EQ(contents(back), text);
  }
  run_json({"pack", made().run, "--as-published", "--set", "quant.rule=rtn", "--set", "quant.matrix_bits=5", "--out", other});
  Args args = on_text("decompress", {"--in", code, "--out", back});
  args[1] = other;
  const Outcome refused = run_program(args);
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, testing::AllOf(HasSubstr("other.fwy: this artifact"), HasSubstr("g.fwt was made with")));
}

// The model's own identity, or the file's, tells a tokenizer apart that has the right size.
TEST(Compress, AndTextScoresRefuseAnotherTokenizer) {
  const std::string text = file_with("t.txt", "some words"), longer = file_with("t_longer.txt", "zebra " + english_like(60000)),
                    model = made().scratch / "t.model", code = made().scratch / "t.fwt", own = made().artifact;
  run_json(on_text("compress", {"--text", text, "--out", code}));
  run_json({"data", "train-tokenizer", longer, "--vocab", std::to_string(kSmokeVocab), "--out", model});
  for (const Args& args : {Args{"compress", own, "--text", text, "--out", made().scratch / "u.fwt", "--tokenizer", model},
                           Args{"decompress", own, "--in", code, "--out", made().scratch / "u.txt", "--tokenizer", model},
                           Args{"score", own, "--text", text, "--tokenizer", model},
                           Args{"generate", own, "--prompt", "the", "--tokens", "2", "--tokenizer", model}}) {
    const Outcome refused = run_program(args);
    EXPECT_EQ(refused.status, 2) << refused.text();
    EXPECT_THAT(refused.err, testing::AllOf(HasSubstr("t.model: this tokenizer (SHA-256 "), HasSubstr("is not the one that")))
        << args[0];
  }
}

TEST(TextChanges, AreToldByDataCommands) {
  const std::string text = file_with("h.txt", english_like(20000) + "\nwith\ttabs  and spaces\n"),
                    model = made().scratch / "h.model";
  const json trained = run_json({"data", "train-tokenizer", text, "--vocab", "400", "--out", model});
  EXPECT_EQ(trained["changed_documents"], 1);
  EXPECT_GE(trained["changed_bytes"], 3);
  const json cut = run_json({"data", "tokenize", text, "--tokenizer", model, "--out", made().scratch / "h"});
  EXPECT_EQ(cut["changed_documents"], 1);
  EXPECT_EQ(cut["changed_bytes"], trained["changed_bytes"]);
  EXPECT_THAT(run_program({"data", "tokenize", text, "--tokenizer", model, "--out", made().scratch / "h2"}).err,
              HasSubstr("in 1 of 1 documents"));
}

TEST(TextChanges, LosslessTokenizersMakeNone) {
  const std::string text = file_with("i.txt", english_like(20000) + "\n\twith tabs  and \xE2\x96\x81marks\xE2\x84\xA2\n"),
                    model = made().scratch / "i.model";
  const json trained = run_json({"data", "train-tokenizer", text, "--vocab", "400", "--lossless", "--out", model});
  EXPECT_EQ(trained["lossless"], true);
  EXPECT_EQ(trained["changed_bytes"], 0);
  const json cut =
      run_json({"data", "tokenize", text, "--val", held_out_of(text), "--tokenizer", model, "--out", made().scratch / "i"});
  EXPECT_EQ(cut["changed_documents"], 0);
  EXPECT_EQ(cut["bytes"], cut["text_bytes"]);
}

}  // namespace
