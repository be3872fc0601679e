// `fairway submission`: the challenge's folder from three runs, refused when a rule is broken; --check checks such a folder.
#include <fmt/core.h>

#include <algorithm>
#include <ctime>
#include <regex>

#include "analysis/receipt_identity.h"
#include "app/check_sample.h"
#include "app/command.h"
#include "app/named_inputs.h"
#include "artifact/artifact.h"
#include "base/error.h"
#include "base/file.h"
#include "base/output.h"
#include "base/sha256.h"
#include "bundle/code_bytes.h"
#include "submission/check.h"
#include "submission/write_folder.h"

namespace fairway::app {
namespace {

namespace fs = std::filesystem;

struct SubmissionFlags {
  std::vector<std::string> runs;
  std::string out, check, data, tokenizer;
  submission::About about;
};

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{:04}-{:02}-{:02}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday);
}

int refuse(const CommonFlags& common, const char* what, const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) text += sentence + "\n";
  print_result(common, {{"held", sentences.empty()}, {"problems", sentences}},
               sentences.empty() ? fmt::format("{}: every rule holds\n", what) : "");
  print_err(text);
  return sentences.empty() ? 0 : 1;
}

// A folder of `run --seeds` stands for its runs.
std::vector<submission::RunFacts> gather(const std::vector<std::string>& names) {
  std::vector<submission::RunFacts> runs;
  for (const std::string& name : names) {
    if (!fs::exists(fs::path(name) / "seeds.json")) {
      require_run(name);
      runs.push_back(submission::read_run_facts(name));
      continue;
    }
    std::vector<fs::path> inside;
    for (const auto& entry : fs::directory_iterator(name)) {
      if (entry.is_directory() && entry.path().filename().string().starts_with("seed")) inside.push_back(entry.path());
    }
    std::sort(inside.begin(), inside.end());
    for (const fs::path& run : inside) runs.push_back(submission::read_run_facts(run));
  }
  return runs;
}

// The artifact itself says which tokenizer its model knows; a receipt that counts bytes with another one is refused.
void check_tokenizers(const std::vector<submission::RunFacts>& runs, std::vector<std::string>& broken) {
  for (const submission::RunFacts& run : runs) {
    const std::string file = (run.folder / "model.fwy").string(), bytes = read_file(file, kMostArtifactFileBytes);
    const std::string bound = ArtifactReader(bytes, file).model().tokenizer;
    for (const IdentityDifference& one :
         differences(tokenizer_identity({bound}, file), receipt_identities(run.receipt, "receipt.json")))
      broken.push_back(
          fmt::format("{}: made with the tokenizer {}, but its receipt counts bytes with {}", file, one.have, one.other));
  }
}

// By the rules first; then, with shards at hand, by scoring windows of the artifacts.
int check(const CommonFlags& common, const SubmissionFlags& flags) {
  if (!fs::is_directory(flags.check)) throw InputError("--check " + flags.check + ": expected the folder of a submission");
  std::vector<std::string> problems = submission::check_folder(flags.check);
  if (!problems.empty() || flags.data.empty()) return refuse(common, flags.check.c_str(), problems);
  SampleCheck sample = check_samples({.folder = flags.check, .data = flags.data, .tokenizer = flags.tokenizer}, common);
  const std::string what = fmt::format("{}: {} targets scored again from its artifacts", flags.check, sample.targets);
  return refuse(common, what.c_str(), sample.problems);
}

int run_submission(const CommonFlags& common, SubmissionFlags flags) {
  if (!flags.check.empty()) return check(common, flags);
  if (flags.runs.empty() || flags.out.empty()) throw InputError("submission: give RUN… and --out, or --check FOLDER");
  const std::pair<const char*, std::string*> told[] = {
      {"--name", &flags.about.name}, {"--author", &flags.about.author}, {"--github-id", &flags.about.github_id}};
  for (const auto& [flag, value] : told) {
    if (value->empty()) throw InputError(fmt::format("{}: required for a submission", flag));
  }
  if (flags.about.date.empty()) flags.about.date = today();
  if (!std::regex_match(flags.about.date, std::regex("[0-9]{4}-[0-9]{2}-[0-9]{2}")))
    throw InputError("--date " + flags.about.date + ": expected YYYY-MM-DD");
  if (flags.about.blurb.empty()) flags.about.blurb = flags.about.name;
  const std::vector<submission::RunFacts> runs = gather(flags.runs);
  const submission::Code code{static_cast<uint64_t>(code_bytes()), sha256_of_file("/proc/self/exe")};
  std::vector<std::string> broken = broken_rules(runs, code);
  if (broken.empty()) check_tokenizers(runs, broken);
  if (!broken.empty()) return refuse(common, "submission", broken);
  const auto check_written = [&](const fs::path& folder) {
    if (const auto problems = submission::check_folder(folder); !problems.empty())
      throw WorkError(flags.out + ": the checker found " + problems.front());
  };
  nlohmann::ordered_json result =
      write_folder(flags.out, runs, flags.about, {source_bundle(), kUnpackSources, FAIRWAY_VERSION}, check_written);
  print_result(common,
               {{"path", flags.out}, {"val_bpb", result["val_bpb"]}, {"bytes_total", result["bytes_total"]}, {"held", true}},
               fmt::format("{}: {:.4f} bits per byte over {} seeds, {} bytes; every rule holds\n", flags.out,
                           result["val_bpb"].get<double>(), runs.size(), result["bytes_total"].dump()));
  return 0;
}

}  // namespace

void add_submission(CLI::App& program) {
  auto flags = std::make_shared<SubmissionFlags>();
  CLI::App* command = add_command(program, "submission", "write the challenge's folder from three runs, or check one",
                                  [flags](const CommonFlags& common) { return run_submission(common, *flags); });
  command->add_option("RUN", flags->runs, "run folders of different seeds, or a folder of run --seeds");
  command->add_option("--out", flags->out, "the folder to make");
  command->add_option("--name", flags->about.name, "name of the submission");
  command->add_option("--author", flags->about.author, "author of the submission");
  command->add_option("--github-id", flags->about.github_id, "the author's name on GitHub");
  command->add_option("--blurb", flags->about.blurb, "a sentence about it (default: the name)");
  command->add_option("--date", flags->about.date, "YYYY-MM-DD (default: today)");
  command->add_option("--against", flags->about.against, "runs or a published system (pr1855) to compare with");
  command->add_flag("--artifacts", flags->about.artifacts, "put the artifacts into the folder too");
  command->add_option("--check", flags->check, "check a finished folder by the challenge's rules instead");
  command->add_option(
      "--data", flags->data,
      "with --check: folder with validation shards, on which windows of the folder's artifacts are scored again");
  command->add_option("--tokenizer", flags->tokenizer,
                      "with --check: SentencePiece model of the shards (default: tokenizer.model in --data)");
}

}  // namespace fairway::app
