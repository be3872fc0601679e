// The fields of `fairway run --json`, from the ledger of a chain.
#include <fmt/core.h>

#include "base/progress_line.h"
#include "pipeline/chain.h"

namespace fairway::pipeline {
namespace {

using nlohmann::ordered_json;

ordered_json result_of(const ordered_json& phases, const char* name) {
  if (!phases.is_object() || !phases.contains(name)) return ordered_json::object();
  return phases[name].value("result", ordered_json::object());
}

double number(const ordered_json& record, const char* key, double otherwise = 0) {
  return record.is_object() && record.contains(key) && record[key].is_number() ? record[key].get<double>() : otherwise;
}

void copy_fields(const ordered_json& from, const std::vector<const char*>& keys, ordered_json& to) {
  for (const char* key : keys) {
    if (from.contains(key)) to[key] = from[key];
  }
}

ordered_json seconds_by_stage(const ordered_json& phases) {
  const ordered_json train = result_of(phases, "train"), pack = result_of(phases, "pack");
  ordered_json out{{"startup", number(train.value("seconds", ordered_json()), "startup")},
                   {"train", number(train, "train_seconds")}};
  if (!pack.empty()) {  // the calibration is quantizing; choosing grids and coding share their time
    const ordered_json spent = pack.value("seconds", ordered_json::object());
    double other = 0;
    for (const auto& [what, seconds] : spent.items())
      other += what == "calibrate" || !seconds.is_number() ? 0 : seconds.get<double>();
    out["quantize"] = number(spent, "calibrate");
    out["pack"] = other;
  }
  if (const ordered_json score = result_of(phases, "score"); !score.empty()) out["score"] = number(score, "seconds");
  for (const char* name : {"audit", "report"}) {
    if (phases.is_object() && phases.contains(name)) out[name] = number(phases[name], "seconds");
  }
  return out;
}

}  // namespace

ordered_json chain_summary(const ordered_json& ledger, const Recipe& recipe) {
  const ordered_json phases = ledger.value("phases", ordered_json::object());
  const ordered_json train = result_of(phases, "train"), pack = result_of(phases, "pack"), score = result_of(phases, "score"),
                     plain = result_of(phases, "score plain"), sliding = result_of(phases, "score sliding"),
                     audit = result_of(phases, "audit");
  ordered_json out{{"seed", recipe.train.seed}};
  copy_fields(train,
              {"steps", "step_ms", "train_seconds", "tokens_per_second", "speed_of_light", "loss", "val_loss", "val_bpb"}, out);
  if (number(train, "tokens_per_second") <= 0 && number(train, "train_seconds") > 0)  // went on after its last step
    out["tokens_per_second"] =
        static_cast<double>(recipe.train.batch_tokens) * number(train, "steps") / number(train, "train_seconds");
  copy_fields(pack, {"artifact_bytes", "code_bytes", "submission_bytes", "damage_estimate", "divergence"}, out);
  if (!plain.empty()) out["roundtrip_bpb"] = plain.value("val_bpb", ordered_json());
  if (!sliding.empty()) out["sliding_bpb"] = sliding.value("val_bpb", ordered_json());
  if (!score.empty()) {
    out["score_mode"] = score.value("mode", "");
    out["score_loss"] = score.value("val_loss", ordered_json());
    out["score_bpb"] = score.value("val_bpb", ordered_json());
  }
  if (!audit.empty()) out["legal"] = audit.value("legal", false);
  out["seconds"] = seconds_by_stage(phases);
  for (const auto& [name, record] : phases.items()) out["phases"][name] = number(record, "seconds");
  return out;
}

std::string summary_text(const ordered_json& s) {
  std::string text = fmt::format("training   {:.0f} steps in {}, {:.1f} ms each", number(s, "steps"),
                                 duration_text(number(s, "train_seconds")), number(s, "step_ms"));
  text += "\n";
  if (s.contains("val_bpb")) text += fmt::format("weights    {:.4f} bits per byte before quantizing\n", number(s, "val_bpb"));
  if (s.contains("artifact_bytes"))
    text += fmt::format("artifact   {:.0f} bytes, {:.0f} with the code\n", number(s, "artifact_bytes"),
                        number(s, "submission_bytes"));
  if (s.contains("roundtrip_bpb")) text += fmt::format("plain      {:.4f} bits per byte\n", number(s, "roundtrip_bpb"));
  if (s.contains("sliding_bpb")) text += fmt::format("sliding    {:.4f} bits per byte\n", number(s, "sliding_bpb"));
  if (s.contains("score_bpb"))
    text += fmt::format("{:<10} {:.4f} bits per byte, {:.4f} nats per token\n", s.value("score_mode", "score"),
                        number(s, "score_bpb"), number(s, "score_loss"));
  if (s.contains("legal")) text += fmt::format("legal      {}\n", s["legal"].get<bool>());
  if (s.contains("path")) text += fmt::format("results in {}\n", s["path"].get<std::string>());
  return text;
}

}  // namespace fairway::pipeline
