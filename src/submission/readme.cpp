// README.md of a submission: what it is, the table over seeds, compliance, how to repeat it.
#include <fmt/core.h>

#include "model/shape/model_shape.h"
#include "submission/write_folder.h"

namespace fairway::submission {
namespace {

using nlohmann::ordered_json;

std::string results_table(std::span<const RunFacts> runs, const ordered_json& submission) {
  std::string text =
      "| seed | steps | ms/step | train s | bpb before quantizing | bpb plain, quantized | bpb final | nats final | eval s | "
      "artifact bytes |\n|---|---|---|---|---|---|---|---|---|---|\n";
  for (const RunFacts& run : runs) {
    const bool plain = run.plain.is_object() && run.plain.contains("val_bpb");
    text += fmt::format("| {} | {} | {:.2f} | {:.1f} | {:.8f} | {} | **{:.8f}** | {:.8f} | {:.1f} | {} |\n", run.seed(),
                        run.steps, run.step_ms, run.train_seconds, run.before_bpb,
                        plain ? fmt::format("{:.8f}", run.plain["val_bpb"].get<double>()) : "–", run.number("val_bpb"),
                        run.number("val_loss"), run.number("seconds"), run.artifact_bytes);
  }
  return text +
         fmt::format(
             "| mean | {:.0f} | {:.2f} | | | | **{:.8f}** | {:.8f} | | {:.0f} |\n| sd | | | | | | {:.8f} | {:.8f} | | |\n",
             submission["train_steps_mean"].get<double>(), submission["step_avg_ms_mean"].get<double>(),
             submission["val_bpb"].get<double>(), submission["val_loss"].get<double>(),
             submission["artifact_bytes_mean"].get<double>(), submission["val_bpb_std"].get<double>(),
             submission["val_loss_std"].get<double>());
}

std::string significance(const ordered_json& s) {
  if (!s.contains("comparison_baseline")) return "";
  const auto number = [&](const char* key) { return s[key].is_number() ? fmt::format("{:.6g}", s[key].get<double>()) : "–"; };
  return fmt::format(
      "\n## Significance\n\nAgainst {}: {} nats per token, {} bits per byte; Welch t = {}, df = {}, p = {}. "
      "Record rule (0.005 nats per token at p < 0.01): {}.\n",
      s["comparison_baseline"].get<std::string>(), number("delta_vs_baseline_nats"), number("delta_vs_baseline_bpb"),
      number("t_statistic"), number("welch_df"), number("p_value"), s["record_rule_held"].get<bool>() ? "held" : "not held");
}

std::string audit_table(const RunFacts& run) {
  std::string text = "| test | property | held |\n|---|---|---|\n";
  for (const ordered_json& test : run.receipt["audit"].value("tests", ordered_json::array()))
    text += fmt::format("| {} | {} | {} |\n", test.value("id", ""), test.value("property", ""),
                        test.value("held", false) ? "yes" : "no");
  return text;
}

std::string quantizing(const RunFacts& run) {
  const QuantRecipe& quant = run.recipe.quant;
  if (run.pack.value("method", "") == "allocator")
    return fmt::format("{}, bits spread over the tensors by rate and distortion", name_of(quant.rule));
  return fmt::format("{} to {} bits", name_of(quant.rule), quant.matrix_bits);
}

}  // namespace

std::string readme_text(std::span<const RunFacts> runs, const About& about, const ordered_json& submission) {
  const RunFacts& first = runs.front();
  const Recipe& recipe = first.recipe;
  std::string text = fmt::format("# {}\n\n{}\n\n**val_bpb {:.4f}** (mean of {} seeds, sd {:.4f}), {} bytes with the code.\n\n",
                                 about.name, about.blurb, submission["val_bpb"].get<double>(), runs.size(),
                                 submission["val_bpb_std"].get<double>(), submission["bytes_total"].dump());
  text += "## Results\n\n" + results_table(runs, submission) + significance(submission);
  text += fmt::format(
      "\n## System\n\n{} parameters: {} layers of width {}, {} heads over {} key/value heads, vocabulary {}. {} tokens a step, "
      "sequences of {}. Quantized by {}, calibration \"{}\". Scored in mode \"{}\", context {}, stride {}. The "
      "whole "
      "recipe is recipe.toml.\n",
      parameter_count(recipe.model), recipe.model.layers, recipe.model.dim, recipe.model.heads, recipe.model.kv_heads,
      recipe.model.vocab, recipe.train.batch_tokens, recipe.data.seq_len, quantizing(first), name_of(recipe.quant.calibration),
      name_of(recipe.score.mode), recipe.score.context, recipe.score.stride);
  text += fmt::format(
      "\n## Compliance\n\n- artifact {} bytes at most, code {} bytes (source.7z), together {} of 16,000,000\n- training "
      "under 600 s, scoring under 600 s, for every seed\n- every score was made from the artifact's bytes; receipt_seed*.json "
      "name them, the program and the data by SHA-256, and keep the sums that the score comes from\n- `fairway audit "
      "model_seedN.fwy --data SHARDS --verify receipt_seedN.json --again` scores an artifact again and compares\n- the audit "
      "held for every seed; for seed {}:\n\n{}",
      submission["artifact_bytes_max"].dump(), submission["bytes_code"].dump(), submission["bytes_total"].dump(), first.seed(),
      audit_table(first));
  text += fmt::format(
      "\n## Run\n\nTrained, packed and scored by {} {} of backend {}{}.\n", first.ranks,
      first.ranks == 1 ? "process" : "processes", first.backend,
      submission["hardware"].contains("device") ? " on " + submission["hardware"]["device"].get<std::string>() : "");
  text += "\n```\nsh run.sh SHARDS    # folder with fineweb_train_*.bin, fineweb_val_*.bin and tokenizer.model\n```\n";
  return text + fmt::format(
                    "\n## Credits\n\n{} (@{}), made with Fairway. The published systems whose parts the recipe names are "
                    "their authors'.\n",
                    about.author, about.github_id);
}

}  // namespace fairway::submission
