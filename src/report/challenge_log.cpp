#include "report/challenge_log.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "recipe/recipe.h"

namespace fairway {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kFirstClosingLine = "Serialized model: ";

json object_in(const fs::path& path) {
  if (!fs::exists(path)) return json::object();
  json record = parse_json_or_discard(read_file(path), path.string());
  if (!record.is_object()) throw InputError(path.string() + ": is not a JSON object");
  return record;
}

double number_or_zero(const json& record, const char* key) {
  return record.contains(key) && record[key].is_number() ? record[key].get<double>() : 0.0;
}

std::string text_or(const json& record, const char* key, const std::string& otherwise, const fs::path& path) {
  const json value = record.value(key, json(otherwise));
  if (!value.is_string())
    throw InputError(fmt::format("{}: its \"{}\" is {}, expected text", path.string(), key, value.dump()));
  return value;
}

std::string codec_of(const json& pack) {
  std::map<std::string, double> bytes;  // the codec that most bytes went through names the file
  for (const json& line : pack.value("ledger", json::array())) {
    if (line.is_object() && line.contains("codec") && line["codec"].is_string() && line.contains("bytes"))
      bytes[line["codec"]] += number_or_zero(line, "bytes");
  }
  std::string most = "rans";
  for (const auto& [codec, count] : bytes) {
    if (count > bytes[most]) most = codec;
  }
  return most;
}

// "mixed_quant: 44 int6, 22 int5", widest first; empty where all tensors have one width.
std::string widths_of(const json& pack) {
  std::map<double, int64_t, std::greater<>> tensors;
  for (const json& tensor : pack.value("tensors", json::array()))
    if (tensor.is_object() && number_or_zero(tensor, "bits") > 0) ++tensors[std::floor(number_or_zero(tensor, "bits"))];
  if (tensors.size() < 2) return "";
  std::string text;
  for (const auto& [bits, count] : tensors) text += fmt::format("{} {} int{:.0f}", text.empty() ? "" : ",", count, bits);
  return "mixed_quant:" + text + "\n";
}

std::string chunks_line(const ScoreRecipe& score, double targets) {
  const auto chunk = static_cast<double>(score.ttt.chunk), stride = static_cast<double>(score.stride),
             context = static_cast<double>(score.context);
  return fmt::format("ttt_sliding:start chunks={:.0f} chunk_tokens={} total_windows={:.0f} stride={} ttt_lr={}\n",
                     std::ceil(targets / chunk), score.ttt.chunk, 1 + std::ceil(std::max(0.0, targets - context) / stride),
                     score.stride, score.ttt.lr);
}

// "  ttt_chunk [20/34] bpb=1.5480 time=8.2s".
std::string chunk_lines(const ScoreRecipe& recipe, const json& score) {
  std::string text;
  const auto chunk = static_cast<double>(recipe.ttt.chunk);
  for (const json& mark : score.value("marks", json::array()))
    if (mark.is_object())
      text += fmt::format(
          "  ttt_chunk [{:.0f}/{:.0f}] bpb={:.6f} time={:.1f}s\n", std::floor(number_or_zero(mark, "targets") / chunk),
          std::ceil(number_or_zero(score, "tokens") / chunk), number_or_zero(mark, "val_bpb"), number_or_zero(mark, "seconds"));
  return text;
}

std::string exact(const std::string& name, const json& score) {
  return fmt::format("{} val_loss:{:.8f} val_bpb:{:.8f}\n", name, number_or_zero(score, "val_loss"),
                     number_or_zero(score, "val_bpb"));
}

}  // namespace

std::string score_line_name(const std::string& name, int64_t bits) {
  const std::string mode = name.substr(0, name.find('+'));  // adapting modes are named alike, whatever is added to them
  if (name == "plain") return fmt::format("final_int{}_roundtrip_exact", bits);
  if (name == "sliding") return fmt::format("final_int{}_sliding_window_exact", bits);
  if (mode == "ttt") return "legal_ttt_exact";
  if (mode == "lora-ttt") return "quantized_ttt_phased";
  std::string word = name;
  std::replace(word.begin(), word.end(), '+', '_');
  return fmt::format("final_int{}_{}_exact", bits, word);
}

std::string closed_log(const fs::path& run) {
  std::istringstream lines(read_file(run / "train.log"));
  std::string log;
  for (std::string line; std::getline(lines, line) && !line.starts_with(kFirstClosingLine);) log += line + "\n";
  const json pack = object_in(run / "pack.json"), plain = object_in(run / "score_plain.json"),
             sliding = object_in(run / "score_sliding.json"), score = object_in(run / "score.json");
  if (pack.empty()) return log;
  const Recipe recipe = parse_recipe(read_file(run / "recipe.toml"), (run / "recipe.toml").string());
  const int64_t bits = recipe.quant.matrix_bits;
  const bool spread = text_or(pack, "method", "", run / "pack.json") == "allocator";  // then tensors have different widths
  const std::string form = fmt::format("{}+{}", spread ? "mixed" : fmt::format("int{}", bits), codec_of(pack));
  const auto weights = run / "averaged.safetensors";
  log += fmt::format("{}{} bytes\n", kFirstClosingLine, fs::exists(weights) ? fs::file_size(weights) : 0);
  log += fmt::format("Code size: {:.0f} bytes\n", number_or_zero(pack, "code_bytes"));
  if (pack.contains("seconds") && pack["seconds"].is_object())
    log += fmt::format("gptq:rule:{} calibration:{} seconds:{:.1f}\n", name_of(recipe.quant.rule),
                       text_or(pack, "calibration", std::string(name_of(recipe.quant.calibration)), run / "pack.json"),
                       number_or_zero(pack["seconds"], "calibrate"));
  log += widths_of(pack);
  if (number_or_zero(pack, "pruned") > 0)
    log += fmt::format("selective_prune: {:.0f} levels\n", number_or_zero(pack, "pruned"));
  log += fmt::format("Serialized model {}: {:.0f} bytes\n", form, number_or_zero(pack, "artifact_bytes"));
  log += fmt::format("Total submission size {}: {:.0f} bytes\n", form,
                     number_or_zero(pack, "artifact_bytes") + number_or_zero(pack, "code_bytes"));
  if (!plain.empty()) log += exact(score_line_name("plain", bits), plain);
  if (!sliding.empty()) log += exact(score_line_name("sliding", bits), sliding);
  if (score.empty()) return log;
  const std::string mode = text_or(score, "mode", "plain", run / "score.json");
  log += fmt::format("val_tokens: {:.0f}\n", number_or_zero(score, "tokens"));
  if (mode == "ttt") log += chunks_line(recipe.score, number_or_zero(score, "tokens")) + chunk_lines(recipe.score, score);
  if (mode != "plain" || plain.empty()) log += exact(score_line_name(mode, bits), score);
  log += exact("final_int8_zlib_roundtrip_exact", score);  // the key of the oldest parsers, with the final score
  return log + fmt::format("total_eval_time:{:.3f}s\n", number_or_zero(score, "seconds"));
}

}  // namespace fairway
