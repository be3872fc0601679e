// Bad artifacts: every fault is refused with a sentence of its own, whether or not the checksum was mended after it.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "artifact/file_parts.h"
#include "artifact/general_codecs.h"
#include "artifact/lane_coder.h"
#include "artifact/lane_tables.h"
#include "artifact/rans.h"
#include "base/error.h"
#include "base/file.h"
#include "base/trellis.h"

namespace fairway {
namespace {

std::string refusal(const std::string& bytes) {
  try {
    read_artifact(bytes, "bad.fwy", {.free_bytes = uint64_t{1} << 20});
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  text.replace(text.find(from), from.size(), to);
  return text;
}

struct Fault {
  std::string name, sentence;
  std::function<std::string()> file;
};

const QuantizedModel& good() {
  static const QuantizedModel kModel = made_model(tiny_architecture(), 21);
  return kModel;
}
Fault changed(const std::string& name, const std::string& sentence, const std::function<void(FileParts&)>& change) {
  return {name, sentence, [change] {
            FileParts parts = parts_of(good());
            change(parts);
            return parts.file();
          }};
}
Fault architecture(const std::string& name, const std::string& sentence, const std::string& from, const std::string& to) {
  return changed(name, sentence,
                 [=](FileParts& f) { f.set_text("architecture", replaced(f.part("architecture").bytes, from, to)); });
}
Fault table(const std::string& name, const std::string& sentence,
            const std::function<void(std::vector<QuantizedTensor>&)>& change) {
  return changed(name, sentence, [change](FileParts& f) {
    std::vector<QuantizedTensor> tensors = good().tensors;
    change(tensors);
    f.set_text("table", encode_table(tensors));
  });
}

std::vector<Fault> header_faults() {
  return {
      {"empty", "not a Fairway artifact", [] { return std::string(); }},
      {"magic alone", "too few for an artifact", [] { return std::string("FWAY\x01"); }},
      changed("version", "artifact version 5", [](FileParts& f) { f.version = 5; }),
      changed("first version", "artifact version 1, this program reads versions 2 to 4", [](FileParts& f) { f.version = 1; }),
      {"bit flipped, not sealed", "checksum",
       [] {
         std::string file = parts_of(good()).file();
         file[200] = static_cast<char>(file[200] ^ 4);
         return file;
       }},
      changed("flags", "flags 0x80 are not known", [](FileParts& f) { f.flags = '\x80'; }),
      changed("tokenizer hash cut", "ends inside the tokenizer hash",
              [](FileParts& f) { f.hashes.resize(9), f.length = "", f.parts.clear(); }),
      changed("recipe hash cut", "ends inside the recipe hash",
              [](FileParts& f) { f.hashes.resize(50), f.length = "", f.parts.clear(); }),
      changed("header cut", "ends inside the training length", [](FileParts& f) { f.length = "", f.parts.clear(); }),
      changed("long number", "longer than eight bytes", [](FileParts& f) { f.length = std::string(9, '\x81'); }),
      changed("padded number", "not in its shortest form", [](FileParts& f) { f.length = std::string("\x81\x00", 2); }),
      changed("training length", "at most 16777216 is possible", [](FileParts& f) { f.length = "\xff\xff\xff\xff\x7f"; }),
      changed("segment length", "segment length 268435455, at most",
              [](FileParts& f) { f.flags = 15, f.length += "\xff\xff\xff\x7f"; }),
      changed("no segment", "segment length 0", [](FileParts& f) { f.flags = 15, f.length += std::string(1, '\0'); }),
      changed("segment cut", "ends inside the segment length", [](FileParts& f) { f.flags = 15, f.parts.clear(); }),
      changed("tokenizer without its name", "carries a tokenizer that it does not name", [](FileParts& f) { f.flags = 21; }),
      changed("no tokenizer", "ends inside the tokenizer", [](FileParts& f) { f.flags = 23; }),
      changed("tokenizer claim", "the tokenizer claims 16777217 bytes, at most",
              [](FileParts& f) {
                f.flags = 23;
                f.parts.push_back({"tokenizer", 0, "x", true, 16777217});
              }),
      changed("looped without loop", "is marked as looped",
              [](FileParts& f) {
                f.set_text("architecture", replaced(f.part("architecture").bytes, "loop.count=1", "loop.count=0"));
              }),
      changed("no architecture", "ends inside the architecture", [](FileParts& f) { f.parts.clear(); }),
      changed("architecture codec", "the architecture has codec 9", [](FileParts& f) { f.part("architecture").codec = 9; }),
      changed("architecture claim", "claims 99999 bytes, at most", [](FileParts& f) { f.part("architecture").claim = 99999; }),
      changed("architecture rans", "for weights and values only", [](FileParts& f) { f.part("architecture").codec = 1; }),
      changed("architecture not brotli", "not a Brotli stream", [](FileParts& f) { f.part("architecture").codec = 2; }),
      changed("architecture not lzma", "not an LZMA stream", [](FileParts& f) { f.part("architecture").codec = 3; }),
      changed("architecture size", "bytes are stored, expected 7", [](FileParts& f) { f.part("architecture").claim = 7; }),
  };
}

std::vector<Fault> model_faults() {
  return {
      architecture("not a line", "not name=value", "vocab=40\n", "vocab\n"),
      architecture("key twice", "a key appears twice", "vocab=40\n", "vocab=40\nvocab=40\n"),
      architecture("unknown key", "a key that this program does not know", "vocab=40\n", "vocab=40\nvocal=1\n"),
      architecture("not a number", "vocab = ?4, expected a number", "vocab=40\n",
                   "vocab=\x01"
                   "4\n"),
      architecture("out of range", "layers = 999", "layers=2", "layers=999"),
      architecture("bad word", "skip = sometimes", "skip=additive", "skip=sometimes"),
      architecture("bad flag", "layer_scale = 7, expected 0 or 1", "layer_scale=1", "layer_scale=7"),
      architecture("heads", "is not a multiple of model.heads", "heads=2", "heads=3"),
      architecture("huge", "parameters; a file of this size may claim", "mlp_hidden=24", "mlp_hidden=65000"),
      architecture("absurd", "parameters; at most", "dim=16\nlayers=2\nheads=2\nkv_heads=1\nmlp_hidden=24",
                   "dim=16384\nlayers=256\nheads=2\nkv_heads=1\nmlp_hidden=65536"),
      architecture("other shape", "the architecture has 25 x 16", "mlp_hidden=24", "mlp_hidden=25"),
      table("missing tensor", "bank.qo[1] is out of place, expected bank.qo[0]", [](auto& t) { t.erase(t.begin() + 1); }),
      table("last tensor missing", "parameter value_embed.layer_scale is missing", [](auto& t) { t.pop_back(); }),
      table("duplicate", "bank.qo[0] appears twice", [](auto& t) { t.insert(t.begin() + 2, t[1]); }),
      table("sliced vector", "block.q_gain is not cut into slices",
            [](auto& t) {
              std::find_if(t.begin(), t.end(), [](const auto& x) { return x.bank == ParamId::q_gain; })->slice = 0;
            }),
      table("sliced vectors", "block.resid_mix is not cut into slices",
            [](auto& t) {
              std::find_if(t.begin(), t.end(), [](const auto& x) { return x.bank == ParamId::resid_mix; })->slice = 0;
            }),
      table("huge dims", "is 4503599627370496 x 16", [](auto& t) { t[0].rows = int64_t{1} << 52; }),
      table("zero dims", "embed.token is 0 x 16", [](auto& t) { t[0].rows = 0; }),
      table("bits", "has coding 9", [](auto& t) { t[0].bits = 9; }),
      table("bits by column", "has coding 73", [](auto& t) { t[0].bits = 9, t[0].columns.resize(16); }),
      table("bits on a trellis", "has coding 137", [](auto& t) { t[0].bits = 9, t[0].trellis = true; }),
      table("too few bits on a trellis", "has coding 129", [](auto& t) { t[0].bits = 1, t[0].trellis = true; }),
      table("bits by column on a trellis", "has coding 201",
            [](auto& t) { t[0].bits = 9, t[0].columns.resize(16), t[0].trellis = true; }),
      table("halves by column", "has coding 80", [](auto& t) { t[0].bits = 16, t[0].columns.resize(16); }),
      table("singles on a trellis", "has coding 160", [](auto& t) { t[0].bits = 32, t[0].trellis = true; }),
      table("a trellis that is not there", "embed.token: row 0 leaves the trellis", [](auto& t) { t[0].trellis = true; }),
      table("steps by column that nobody has", "column steps: 48 bytes are stored, expected 24",
            [](auto& t) { std::find_if(t.begin(), t.end(), [](const auto& x) { return !x.columns.empty(); })->columns = {}; }),
      table("steps by column that are not there", "column steps: 48 bytes are stored, expected 64",
            [](auto& t) { t[0].columns.resize(16); }),
      table("rank", "correction of rank 17", [](auto& t) { t[0].correction.rank = 17; }),
      table("groups too small", "in groups of 7, expected", [](auto& t) { t[0].correction = {.rank = 1, .group = 7}; }),
      table("groups too large", "in groups of 65537", [](auto& t) { t[0].correction = {.rank = 1, .group = 65537}; }),
      table("rank beyond its bits", "in groups of 1, expected", [](auto& t) { t[0].correction.rank = 512 + 3; }),
      table("rank of halves", "correction of rank 1, at most 0", [](auto& t) { t.back().correction.rank = 1; }),
      changed("unknown parameter", "parameter number 77", [](FileParts& f) { f.part("table").bytes[0] = 77; }),
      changed("table cut", "ends inside the tensor table",
              [](FileParts& f) { f.set_text("table", f.part("table").bytes.substr(0, 40)); }),
      changed("table too long", "bytes after the last parameter",
              [](FileParts& f) { f.set_text("table", f.part("table").bytes + "xx"); }),
  };
}

const QuantizedModel& all_on_trellis() {
  static const QuantizedModel kModel = [] {
    QuantizedModel model = made_model(tiny_architecture(), 5);
    for (QuantizedTensor& t : model.tensors) {
      if (t.coding != TensorCoding::integer_rows || t.slice < 0) continue;
      t.trellis = true;
      t.q = gaussian_on_trellis(t.rows, t.cols, 2.4, largest_level(t.bits), 7);
    }
    return model;
  }();
  return kModel;
}

// A matrix of 16 x 16 whose first weight is an escape beyond the largest level; the others are the least that the trellis lets.
std::string escape_on_trellis() {
  FineEncoder rans;  // largest, width, spread, rule, classes
  rans.put_bits(15, 4), rans.put_bits(192, 9), rans.put_bits(0, 3), rans.put_bits(0, 3), rans.put_bits(0, 1);
  const LaneClass even = lane_class(192, 0, 15, LaneLevels::even), odd = lane_class(192, 0, 15, LaneLevels::odd);
  std::array<int, 16> states{};
  for (size_t i = 0; i < 16 * 16; ++i) {
    int& state = states[i % 16];
    const int value = i == 0 ? kEscape : state & 1;
    const LaneRange range = ((state & 1) != 0 ? odd : even).ranges[static_cast<size_t>(value - kEscape)];
    rans.put({static_cast<uint16_t>(range.start << 5), static_cast<uint16_t>(range.freq << 5)});
    state = next_trellis_state(state, value);
  }
  EscapeModel escapes(15, FineModel::Use::encode);
  rans.put(escapes.model().range(15 - even.core));
  rans.put_bits(0, 1);
  return rans.finish();
}

std::vector<Fault> data_faults() {
  const auto code = [](FileParts& f, const std::string& name, char codec, const std::string& bytes) {
    f.part(name).codec = codec, f.part(name).bytes = bytes;
  };
  const std::string zeros(1 << 22, '\0');
  const auto coded_down = [] {
    return encode_weights(weight_streams(good().tensors, 2)[static_cast<size_t>(StreamRole::down)]);
  };
  const auto lanes_down = [] { return encode_lanes(weight_streams(good().tensors, 2)[static_cast<size_t>(StreamRole::down)]); };
  return {
      changed("stream too long for the file", "ends inside the query weights: 123456 bytes wanted",
              [](FileParts& f) { f.part("query").coded_size = 123456; }),
      changed("stream codec", "the down weights has codec 6", [](FileParts& f) { f.part("down").codec = 6; }),
      changed("raw size", "the down weights: 3 bytes are stored", [](FileParts& f) { f.part("down").bytes = "abc"; }),
      changed("brotli bomb", "the down weights: the Brotli stream holds more than",
              [=](FileParts& f) { code(f, "down", 2, brotli_encode(zeros)); }),
      changed("lzma bomb", "bytes of memory, too many for", [=](FileParts& f) { code(f, "down", 3, lzma_encode(zeros)); }),
      changed("lzma longer", "ends too early or holds more than",
              [=](FileParts& f) { code(f, "down", 3, lzma_encode(f.part("down").bytes + "more")); }),
      changed("brotli shorter", "expected 768 and none",
              [=](FileParts& f) { code(f, "down", 2, brotli_encode(f.part("down").bytes.substr(9))); }),
      changed("brotli cut", "the Brotli stream ends too early",
              [=](FileParts& f) {
                const std::string b = brotli_encode(f.part("down").bytes);
                code(f, "down", 2, b.substr(0, b.size() / 2));
              }),
      changed("rans weights", "the down weights: codec 1 is for values only",
              [=](FileParts& f) { code(f, "down", 1, coded_down()); }),
      changed("shaped, empty", "nothing is stored, not even the coder's state", [=](FileParts& f) { code(f, "down", 4, ""); }),
      changed("shaped, cut", "the down weights: the coder's state does not end where encoding began",
              [=](FileParts& f) { code(f, "down", 4, coded_down().substr(0, 100)); }),
      changed("shaped, more", "the up weights: the coder's state does not end where encoding began",
              [=](FileParts& f) { code(f, "up", 4, coded_down() + "zz"); }),
      changed("shaped, goes on from nothing", "continues from a previous one",
              [=](FileParts& f) {
                FineEncoder rans;
                rans.put_bits(0, 1);
                code(f, "down", 4, rans.finish());
              }),
      changed("lanes, empty", "the up weights: nothing is stored, not even the coder's state",
              [=](FileParts& f) { code(f, "up", 5, ""); }),
      changed("lanes, more", "the down weights: the state of the plans does not end where encoding began",
              [=](FileParts& f) { code(f, "down", 5, lanes_down() + "zz"); }),
      changed("lanes, classes", "classes 33 to 40 leave out the middle one",
              [=](FileParts& f) {
                FineEncoder rans;  // largest, width, spread, rule, classes, lowest, highest
                rans.put_bits(15, 4), rans.put_bits(200, 9), rans.put_bits(0, 3), rans.put_bits(0, 3), rans.put_bits(1, 1);
                rans.put_bits(33, 6), rans.put_bits(40, 6);
                code(f, "query", 5, rans.finish());
              }),
      changed("lanes, escape", "an escape stands for 16, the largest level is 15",
              [=](FileParts& f) {
                FineEncoder rans;
                rans.put_bits(15, 4), rans.put_bits(192, 9), rans.put_bits(0, 3), rans.put_bits(0, 3);
                rans.put_bits(0, 1);
                const LaneClass own = lane_class(192, 0, 15);
                EscapeModel escapes(15, FineModel::Use::encode);
                const auto fine = [&](LaneRange range) {
                  rans.put({static_cast<uint16_t>(range.start << 5), static_cast<uint16_t>(range.freq << 5)});
                };
                for (int i = 0; i < 16 * 16; ++i) fine(own.ranges[i == 0 ? 0 : 128]);
                rans.put(escapes.model().range(15 - own.core));
                code(f, "query", 5, rans.finish());
              }),
      changed("lanes values", "halves: codec 5 is for weights only", [](FileParts& f) { f.part("halves").codec = 5; }),
      changed("shaped values", "halves: codec 4 is for weights only", [](FileParts& f) { f.part("halves").codec = 4; }),
      changed("weight beyond its grid", "the grid of 5 bits ends at 15", [](FileParts& f) { f.part("query").bytes[3] = 16; }),
      {"weight off its trellis", "bank.qo[1]: row 2 leaves the trellis",
       [] {
         FileParts f = parts_of(made_on_trellis(tiny_architecture(), 5));
         f.part("query").bytes[16 * 16 + 2 * 16 + 3] ^= 1;
         return f.file();
       }},
      {"lanes on a trellis, escape", "the query weights: an escape stands for 52, the largest level is 15",
       [=] {
         FileParts f = parts_of(all_on_trellis());
         code(f, "query", 5, escape_on_trellis());
         return f.file();
       }},
      {"lanes on a trellis, more", "the up weights: the state of the plans does not end where encoding began",
       [=] {
         FileParts f = parts_of(all_on_trellis());
         code(f, "up", 5,
              encode_lanes(weight_streams(all_on_trellis().tensors, 2)[static_cast<size_t>(StreamRole::up)]) + "zz");
         return f.file();
       }},
      {"shaped on a trellis, cut", "the output weights: the coder's state does not end where encoding began",
       [=] {
         FileParts f = parts_of(all_on_trellis());
         const std::string whole =
             encode_weights(weight_streams(all_on_trellis().tensors, 2)[static_cast<size_t>(StreamRole::output)]);
         code(f, "output", 4, whole.substr(0, whole.size() / 2));
         return f.file();
       }},
      {"weight beyond a trellis", "bank.qo[1]: weight 0 is 126, the grid of 8 bits ends at 124",
       [] {
         QuantizedModel model = made_on_trellis(tiny_architecture(), 5);
         for (QuantizedTensor& t : model.tensors) t.bits = t.trellis ? 8 : t.bits;
         FileParts f = parts_of(model);
         f.part("query").bytes[16 * 16] = 126;
         return f.file();
       }},
      changed("scale", "embed.token: a row scale is negative or not finite",
              [](FileParts& f) { f.part("row scales").bytes[1] = 0x7C; }),
      changed("column step", "bank.down[0]: the step of column 1 is of class 25, expected -24 to 24",
              [](FileParts& f) { f.part("column steps").bytes[1] = 25; }),
      changed("column step below", "bank.down[1]: the step of column 3 is of class -25, expected",
              [](FileParts& f) { f.part("column steps").bytes[24 + 3] = -25; }),
      changed("least column step", "bank.down[1]: the step of column 4 is of class -128, expected",
              [](FileParts& f) { f.part("column steps").bytes[24 + 4] = -128; }),
      changed("column steps cut", "ends inside column steps: 654321 bytes wanted",
              [](FileParts& f) { f.part("column steps").coded_size = 654321; }),
      changed("column steps codec", "column steps has codec 7", [](FileParts& f) { f.part("column steps").codec = 7; }),
      changed("column steps in lanes", "column steps: codec 5 is for weights only",
              [](FileParts& f) { f.part("column steps").codec = 5; }),
      changed("column steps bomb", "column steps: the Brotli stream holds more than",
              [=](FileParts& f) { code(f, "column steps", 2, brotli_encode(zeros)); }),
      changed("half", "a half is not finite", [](FileParts& f) { f.part("halves").bytes[1] = 0x7E; }),
      changed("single", "a single is not finite",
              [](FileParts& f) { std::memcpy(f.part("singles").bytes.data(), "\0\0\xc0\x7f", 4); }),
      changed("factor A", "factor A lies outside", [](FileParts& f) { f.part("correction factors A").bytes[0] = 2; }),
      changed("factor B", "factor B lies outside", [](FileParts& f) { f.part("correction factors B").bytes[0] = 9; }),
      changed("factor scale", "a correction scale is", [](FileParts& f) { f.part("correction scales A").bytes[1] = '\x80'; }),
      changed("plane missing", "halves: a plane of the coded values is missing",
              [=](FileParts& f) { code(f, "halves", 1, "ab"); }),
      changed("plane too long", "a plane of 4096 bytes is longer",
              [=](FileParts& f) { code(f, "halves", 1, std::string("\0\x10\0\0ab", 6)); }),
      changed("plane cut", "the coded values end before",
              [=](FileParts& f) { code(f, "halves", 1, std::string("\x01\0\0\0a", 5)); }),
      changed("last section missing", "ends inside correction scales B", [](FileParts& f) { f.parts.pop_back(); }),
      changed("trailing bytes", "1 bytes after the last section",
              [](FileParts& f) { f.parts.back().coded_size = 2, f.parts.back().bytes += "z"; }),
  };
}

TEST(BadArtifact, EachFaultHasItsSentence) {
  std::map<std::string, std::string> said;
  std::vector<Fault> faults;
  for (auto list : {header_faults(), model_faults(), data_faults()}) faults.insert(faults.end(), list.begin(), list.end());
  ASSERT_GE(faults.size(), 60U);
  ASSERT_EQ(refusal(parts_of(good()).file()), "");
  for (const Fault& fault : faults) {
    const std::string sentence = refusal(fault.file());
    EXPECT_NE(sentence.find(fault.sentence), std::string::npos) << fault.name << ": " << sentence;
    EXPECT_NE(sentence.find("bad.fwy"), std::string::npos) << fault.name << ": " << sentence;
    EXPECT_TRUE(said.emplace(sentence, fault.name).second)
        << fault.name << " says what " << said[sentence] << " says: " << sentence;
  }
}

TEST(BadArtifact, CutAnywhere) {
  const std::string body = parts_of(good()).body();
  for (size_t size = 0; size < body.size(); size += 13) {
    EXPECT_NE(refusal(body.substr(0, size)), "") << size;
    EXPECT_NE(refusal(sealed(body.substr(0, size))), "") << size;  // as if it had been written so
  }
}

TEST(BadArtifact, AnyBitWithoutMendingTheChecksum) {
  const std::string file = write_artifact(good());
  for (size_t i = 0; i < file.size(); i += 5) {
    std::string changed_file = file;
    changed_file[i] = static_cast<char>(changed_file[i] ^ (1 << i % 8));
    EXPECT_NE(refusal(changed_file), "") << i;
  }
}

}  // namespace
}  // namespace fairway
