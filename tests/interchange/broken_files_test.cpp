// Broken checkpoints and artifacts, made from the samples: each is refused by the program with a sentence of its own on one
// line that names the file, with exit status 2, and leaves no run folder.
#include <gmock/gmock.h>

#include <algorithm>
#include <limits>

#include "app/program.h"
#include "data/scratch_folder.h"
#include "interchange/little_endian.h"
#include "interchange/maker.h"
#include "interchange/samples.h"

namespace fairway::interchange {
namespace {

using testing::HasSubstr;

class BrokenFiles : public testing::Test {
 protected:
  // `sample` says which sizes the file should have.
  Outcome import(const std::string& sample, const std::string& bytes, const std::string& name) {
    const std::string golden = golden_of(sample), recipe = golden_recipe_file(golden, scratch_.path());
    put_file(scratch_ / name, bytes);
    return run_program({"import", scratch_ / name, "--recipe", recipe, "--out", scratch_ / "run", "--json"});
  }
  nlohmann::json refused(const std::string& sample, const std::string& bytes, const std::vector<std::string>& says) {
    const std::string name = "broken" + std::filesystem::path(sample).extension().string();
    const Outcome outcome = import(sample, bytes, name);
    EXPECT_EQ(outcome.status, 2) << outcome.text();
    EXPECT_THAT(outcome.err, testing::StartsWith("fairway: "));
    EXPECT_THAT(outcome.err, HasSubstr(name));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.text();
    for (const std::string& part : says) EXPECT_THAT(outcome.err, HasSubstr(part));
    EXPECT_FALSE(std::filesystem::exists(scratch_ / "run"));
    return outcome.out.empty() ? nlohmann::json::object() : nlohmann::json::parse(outcome.out, nullptr, false);
  }
  ScratchFolder scratch_;
};

const std::string k1105 = "pr1105_tiny.pt", kUnbanked = "pr1584_tiny_unbanked.pt", kBest = "best_tiny.pt";
const std::string kInt6 = "pr1105_tiny.int6.ptz", kBestArtifact = "best_tiny.brotli.ptz", kRecord = "record_tiny.pgrp2.ptz";

TEST_F(BrokenFiles, CutOrDamaged) {
  const std::string good = sample_bytes(k1105);
  refused(k1105, good.substr(0, good.size() * 6 / 10), {"truncated"});
  const ZipParts parts(good);
  std::string flipped = good;
  flipped[flipped.find(parts.entries.at("data/3").substr(0, 64)) + 17] ^= 4;
  refused(k1105, flipped, {"data/3'", "tensor '", "CRC"});
}

TEST_F(BrokenFiles, TensorsThatTheirStoragesDoNotHold) {
  ZipParts past(sample_bytes(k1105)), gone = past, halved = past;
  past.pickle() = replaced(past.pickle(), "qo_bank", "K\x0AK\x20K\x20\x87", "K\x0AK\x20K\x21\x87");
  refused(k1105, past.file(), {"tensor 'qo_bank'", "[10, 32, 33]", "past its storage of 10240 elements"});
  ZipParts empty = gone, far = gone;
  // (2³¹-1)² elements beside an axis of none, and an offset behind the storage.
  empty.pickle() = replaced(empty.pickle(), "qo_bank", "K\x0AK\x20K\x20\x87",
                            "J\xFF\xFF\xFF\x7FJ\xFF\xFF\xFF\x7FK" + std::string(1, '\0') + "\x87");
  refused(k1105, empty.file(), {"tensor 'qo_bank'", "has no elements"});
  far.pickle() = replaced(far.pickle(), "qo_bank", "QK" + std::string(1, '\0'), "QJ\xFF\xFF\xFF\x7F");
  refused(k1105, far.file(), {"tensor 'qo_bank'", "from element 2147483647"});
  gone.entries.erase("data/7");
  refused(k1105, gone.file(), {"no entry 'made/data/7'", "tensor '"});
  std::string& storage = halved.entries["data/1"];
  storage.resize(storage.size() / 2);
  refused(k1105, halved.file(), {"data/1'", "elements of f32", "bytes"});
}

TEST_F(BrokenFiles, PicklesThatAskForCode) {
  refused(k1105,
          with_pickle("\x80\x02"
                      "cos\nsystem\nX\x04" +
                      std::string(3, '\0') + "true\x85R."),
          {"'os.system'", "nothing of it was executed"});
  refused(k1105,
          with_pickle("\x80\x02"
                      "cbuiltins\neval\n)R."),
          {"'builtins.eval'"});
  refused(k1105,
          with_pickle("\x80\x02"
                      "ctorch\nload\n)R."),
          {"'torch.load'"});
}

TEST_F(BrokenFiles, PicklesThatAreNone) {
  const std::string begin = "\x80\x02";
  refused(k1105, with_pickle(begin + "\x93."), {"opcode 0x93"});
  refused(k1105, with_pickle(begin + "h\x05."), {"memo number 5 was never set"});
  refused(k1105, with_pickle(begin + "]q" + std::string(1, '\0') + "h" + std::string(1, '\0') + "a" + "."),
          {"expected a dict"});
  std::string endless = begin + "]q" + std::string(1, '\0');
  for (int i = 0; i < 100; ++i) endless += "h" + std::string(1, '\0') + "a";
  refused(k1105, with_pickle(endless + "."), {"nested more than 64"});
  refused(k1105, with_pickle(begin + "}(X\1" + std::string(3, '\0') + "w."), {"MARK", "never closed"});
  refused(k1105, with_pickle(begin + std::string(1'000'000, '(')), {"nested more than 64"});
  refused(k1105, with_pickle(begin + ")" + std::string(1'000'000, '\x85') + "."), {"nested more than 64"});
  refused(k1105,
          with_pickle(begin + "X\xFF\xFF\xFF\xFF"
                              "abc."),
          {"a text of 4294967295 bytes runs past the end"});
  refused(k1105,
          with_pickle("\x80\x04"
                      "}."),
          {"protocol 4"});
  refused(k1105, with_pickle(begin + "}.."), {"follow its end"});
  refused(k1105, with_pickle(begin + "}"), {"runs past the end"});
}

TEST_F(BrokenFiles, TensorsThatAreMissingOrTooMany) {
  Dict short_bank(sample_bytes(k1105));
  StoredTensor& kv = short_bank.tensors.at("kv_bank");
  kv = cut_rows(kv, 9);
  EXPECT_EQ(refused(k1105, short_bank.file(), {"1 missing (kv_bank: expected [10, 16, 32], found [9, 16, 32])"})["missing"],
            nlohmann::json({"kv_bank"}));
  Dict no_value(sample_bytes(kUnbanked));
  no_value.tensors.erase("blocks.4.attn.c_v.weight");
  EXPECT_EQ(refused(kUnbanked, no_value.file(), {"blocks.4.attn.c_v.weight: expected [16, 32], not there"})["missing"],
            nlohmann::json({"blocks.4.attn.c_v.weight"}));
  Dict no_block(sample_bytes(k1105));
  std::erase_if(no_block.tensors, [](const auto& entry) { return entry.first.starts_with("blocks.4."); });
  EXPECT_EQ(refused(k1105, no_block.file(), {"4 missing", "blocks.4.attn_scale"})["missing"].size(), 4U);
  Dict extra(sample_bytes(k1105));
  extra.tensors["blocks.1.attn.vrl_alpha"] = tensor_of({1}, {0.5F});
  EXPECT_EQ(refused(k1105, extra.file(), {"1 unexpected", "blocks.1.attn.vrl_alpha", "Fairway does not have"})["unexpected"],
            nlohmann::json({"blocks.1.attn.vrl_alpha"}));
}

TEST_F(BrokenFiles, OptionsThatFairwayLacks) {
  for (const std::string option :
       {"lm_head.weight", "embed_proj.weight", "head_proj.weight", "blocks.0.attn.attn_gate.weight",
        "blocks.0.attn.attn_gate_proj.weight", "blocks.0.attn.vr_lambda", "blocks.0.dtg_gate.weight", "bigram.ngram_gate"}) {
    Dict dict(sample_bytes(k1105));
    dict.tensors[option] = tensor_of({1}, {1});
    refused(k1105, dict.file(), {option + " [1]: ", "which Fairway does not have"});
  }
  Dict wide(sample_bytes(kBest));
  wide.tensors["blocks.0.attn.attn_gate_w"] = tensor_of({4, 32}, std::vector<float>(128, 0));
  refused(kBest, wide.file(), {"blocks.0.attn.attn_gate_w", "found [4, 32]", "gate over the whole width"});
  Dict capped(sample_bytes(kBest));
  capped.tensors["softcap_pos"] = tensor_of({}, {30});
  capped.tensors["softcap_neg"] = tensor_of({}, {25});
  refused(kBest, capped.file(), {"softcap_neg", "softcap_pos", "expected both to be 30"});
  refused(k1105, with_pickle("\x80\x02}X\x10" + std::string(3, '\0') + "__quant_format__K\1s."), {"naive baseline"});
}

TEST_F(BrokenFiles, TransposedTensors) {
  Dict smear(sample_bytes(kBest)), up(sample_bytes(k1105));
  smear.tensors["smear_gate.weight"] = turned(smear.tensors["smear_gate.weight"]);
  EXPECT_EQ(refused(kBest, smear.file(), {"1 transposed", "smear_gate.weight: expected [1, 12], found [12, 1]"})["transposed"],
            nlohmann::json({"smear_gate.weight"}));
  up.tensors["mlp_up_bank"] = turned(up.tensors["mlp_up_bank"]);
  EXPECT_EQ(refused(k1105, up.file(), {"1 transposed", "mlp_up_bank"})["transposed"], nlohmann::json({"mlp_up_bank"}));
}

TEST_F(BrokenFiles, ArtifactsWithoutTheirSteps) {
  const Dict good(read_weight_bytes(kInt6)), best(read_weight_bytes(kBestArtifact));
  const std::string name = "blocks.0.mlp.proj.weight", steps = name + ".scale";
  const auto changed = [&](const StoredTensor& tensor) {
    Dict dict = good;
    dict.tensors[steps] = tensor;
    return dict.file();
  };
  Dict gone = good;
  gone.tensors.erase(steps);
  refused(kInt6, gone.file(), {"weight '" + name + "' has no tensor '" + steps + "'"});
  const StoredTensor& scale = good.tensors.at(steps);
  refused(kInt6, changed(cut_rows(scale, scale.shape[0] - 1)), {steps, "has 31 steps; expected 32"});
  refused(kInt6, changed(changed_value(scale, 3, std::numeric_limits<float>::quiet_NaN())), {steps, "step 3 is nan"});
  refused(kInt6, changed(changed_value(scale, 0, std::numeric_limits<float>::infinity())), {steps, "step 0 is inf"});
  Dict kind = good;
  kind.kinds[name] = "int6 squared";
  refused(kInt6, kind.file(), {"kind of '" + name + "'", "int6 squared"});
  Dict left = good;
  left.kinds.erase(name);
  refused(kInt6, left.file(), {"belongs to no weight that 'm' names"});
  const std::string groups = "tok_emb.weight.lqBs_a";
  Dict uneven = best;
  ASSERT_TRUE(uneven.tensors.contains(groups));
  uneven.tensors[groups] = tensor_of({7}, std::vector<float>(7, 1));
  refused(kBestArtifact, uneven.file(), {groups, "7 steps, which do not divide"});
}

TEST_F(BrokenFiles, CompressedStreams) {
  const std::string zip = read_weight_bytes(kInt6);
  for (const int stride : {0, 1, 255})
    refused(kInt6, brotli(shuffled(zip, static_cast<char>(stride))), {"BSHF", "stride " + std::to_string(stride)});
  // A payload may be odd, as this one is; one byte more or less is another file.
  EXPECT_EQ(zip.size() % 2, 1U);
  refused(kInt6, brotli(shuffled(zip) + "x"), {"truncated"});
  refused(kInt6, brotli(shuffled(zip).substr(0, 5 + zip.size() - 1)), {"torch.save"});
  for (const auto& [coded, codec] :
       {std::pair{sample_bytes(kInt6), "xz"}, {sample_bytes("pr1105_tiny.brotli.ptz"), "Brotli"}, {zlib(zip), "zlib"}}) {
    refused(kInt6, coded.substr(0, coded.size() - 40), {std::string("the ") + codec + " stream ends before its end"});
    refused(kInt6, coded + "junk", {std::string("4 bytes follow the end of the ") + codec + " stream"});
  }
  refused(kInt6, xz(std::string(72 << 20, '\0')), {"decompresses to more than", "limit"});
  refused(kInt6, std::string(64, '\x81'), {"a file for import is"});
  refused(kInt6, "\x80\x02\x8A\x0A" + std::string(60, 'x'), {"before 1.6"});
  refused(kInt6, "", {"is empty"});
}

TEST_F(BrokenFiles, GroupContainers) {
  const std::string first = sample_bytes("best_tiny.pgrp1.ptz"), second = sample_bytes(kRecord);
  const auto word = [](std::string bytes, size_t at, uint32_t value) {
    std::memcpy(bytes.data() + at, &value, 4);
    return bytes;
  };
  refused(kRecord, word(second, 4, 3), {"second word is 3"});
  refused(kBestArtifact, word(first, 8, 0x7FFFFFFF), {"stream 0", "past the end"});
  const std::string name = "blocks.0.attn.c_k.weight.q";
  const size_t named = second.find(name), rows = named + name.size(), order = rows + 8;
  refused(kRecord, word(word(second, rows, 0xFFFFFFFF), rows + 4, 0xFFFFFFFF), {"order of '" + name + "'", "past the end"});
  refused(kRecord, word(second, rows + 4, 0xFFFFFFFF), {"matrix '" + name + "'", "larger than the limit"});
  std::string twice = second, large = second;
  twice[order + 2] = second[order], twice[order + 3] = second[order + 1];
  refused(kRecord, twice, {"row order of '" + name + "'", "twice"});
  large[order] = 16;
  refused(kRecord, large, {"row order of '" + name + "'", "has 16 rows"});
  const std::string other = "blocks.0.attn.c_q.weight.q", k_twice = replaced(second, other, other, name);
  refused(kRecord, k_twice, {"'" + name + "' twice"});
  const std::string last = "tok_emb.weight.q";
  const size_t method = second.find(last) + last.size() + 8 + 2 * 96;
  std::string unknown = second;
  unknown[method] = 7;
  refused(kRecord, unknown, {"method 7"});
  refused(kRecord, second.substr(0, second.size() - 9), {"past the end"});
  refused(kRecord, second + "x", {"1 bytes follow its end"});
}

// With a PATH on which there is no program.
TEST_F(BrokenFiles, LrzipIsAskedFor) {
  const std::string before = std::getenv("PATH") == nullptr ? "" : std::getenv("PATH");
  ::setenv("PATH", scratch_.path().c_str(), 1);
  refused(kBestArtifact, sample_bytes("best_tiny.pgrp1.ptz"), {"lrzip", "not installed"});
  std::string second = sample_bytes(kRecord);
  const std::string last = "tok_emb.weight.q";
  second[second.find(last) + last.size() + 8 + 2 * 96] = 1;
  refused(kRecord, second, {"lrzip", "not installed"});
  ::setenv("PATH", before.c_str(), 1);
}

}  // namespace
}  // namespace fairway::interchange
