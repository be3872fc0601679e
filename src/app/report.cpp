// `fairway report`: a page about one run, the seeds of a recipe, a sweep or several of them; with --serve, a live one.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "app/named_inputs.h"
#include "app/report_comparison.h"
#include "app/stages.h"
#include "base/error.h"
#include "base/file.h"
#include "base/signals.h"
#include "base/writer_lock.h"
#include "report/csv.h"
#include "report/groups.h"
#include "report/page.h"
#include "report/serve.h"
#include "report/tensorboard.h"

namespace fairway::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

struct ReportFlags {
  std::vector<std::string> runs;
  std::string out, tensorboard, csv;
  bool serve = false;
  int port = 0;
};

// `data` answers for what stands behind the "?" of an address.
int serve_pages(const CommonFlags& common, const ReportFlags& flags,
                const std::function<std::optional<ordered_json>(const std::string&)>& data) {
  const StopSignals signals;
  const auto answer = [&](const std::string& query, const std::function<std::string(const ordered_json&)>& form) {
    const std::optional<ordered_json> found = data(query);
    return found ? std::optional(form(*found)) : std::nullopt;
  };
  serve_report(
      static_cast<uint16_t>(flags.port),
      {.page = [&](const std::string& query) { return answer(query, report_page); },
       .data = [&](const std::string& query) { return answer(query, json_text); }},
      [&](uint16_t port) {
        print_result(common, {{"url", fmt::format("http://127.0.0.1:{}/", port)}, {"port", port}},
                     fmt::format("http://127.0.0.1:{}/ (end with Ctrl-C)\n", port));
      },
      [&] { return signals.requested(); });
  return 0;
}

int serve(const CommonFlags& common, const ReportFlags& flags, const std::vector<fs::path>& folders) {
  if (!flags.out.empty()) throw InputError("--serve writes no file; leave out --out");
  if (folders.size() == 1 && folder_kind_of(folders.front()) == FolderKind::other)
    return serve_pages(common, flags, [&](const std::string& query) { return folder_data(folders.front(), query); });
  report_data(folders, false);  // what cannot be read is refused before anything is served
  return serve_pages(common, flags, [&](const std::string&) { return std::optional(report_data(folders, true)); });
}

// Every run behind the names: of seeds all of them. Runs of one name are told apart by their folders.
struct NamedRuns {
  std::vector<fs::path> folders;
  std::vector<std::string> names;
};
NamedRuns runs_behind(const std::vector<fs::path>& folders) {
  NamedRuns out;
  for (const fs::path& folder : folders) {
    const std::vector<fs::path> runs = side_of(folder).runs;
    out.folders.insert(out.folders.end(), runs.begin(), runs.end());
  }
  out.names = distinct_names(out.folders);
  for (size_t i = 0; i < out.names.size(); ++i) {
    std::replace(out.names[i].begin(), out.names[i].end(), '/', '-');
    const auto same = std::count(out.names.begin(), out.names.begin() + static_cast<ptrdiff_t>(i), out.names[i]) +
                      (out.names[i] == "runs" ? 1 : 0);  // runs.csv is of all
    if (same > 0) out.names[i] += fmt::format("-{}", same + 1);
  }
  return out;
}

void export_runs(const ReportFlags& flags, const std::vector<fs::path>& folders, pipeline::Outcome& outcome) {
  if (flags.tensorboard.empty() && flags.csv.empty()) return;
  const NamedRuns runs = runs_behind(folders);
  const auto wrote = [&](const char* key, const fs::path& path) {
    outcome.result[key].push_back(path.string());
    outcome.text += path.string() + "\n";
  };
  for (size_t i = 0; i < runs.folders.size(); ++i) {
    if (!flags.tensorboard.empty())
      wrote("tensorboard", write_tensorboard(runs.folders[i], fs::path(flags.tensorboard) / runs.names[i]));
    if (!flags.csv.empty()) wrote("csv", write_steps_csv(runs.folders[i], flags.csv, runs.names[i]));
  }
  if (!flags.csv.empty()) wrote("csv", write_runs_csv(runs.folders, runs.names, flags.csv));
}

int run_report(const CommonFlags& common, const ReportFlags& flags) {
  const std::vector<fs::path> folders(flags.runs.begin(), flags.runs.end());
  for (const fs::path& folder : folders) {
    const bool several = fs::is_directory(folder) && folder_kind_of(folder) != FolderKind::other;
    const bool fills =
        flags.serve && folders.size() == 1 && fs::is_directory(folder) && kind_of(folder.string()) != "a folder of shards";
    if (!several && !fills) require_run(folder.string());
  }
  if (flags.serve) return serve(common, flags, folders);
  pipeline::Outcome outcome = do_report(folders, flags.out.empty() ? folders.front() / "report.html" : fs::path(flags.out));
  export_runs(flags, folders, outcome);
  print_result(common, outcome.result, outcome.text);
  return outcome.status;
}

}  // namespace

pipeline::Outcome do_report(const std::vector<fs::path>& folders, const fs::path& out) {
  ordered_json data = report_data(folders, false);
  ThreadPool pool(folders.size() > 1 ? hardware_threads() : 1);
  add_comparison(folders, pool, data);
  const std::string page = report_page(data);
  const WriterLock lock = WriterLock::of_file(out);
  write_file_atomic(out, page);
  return {0, {{"path", out.string()}, {"bytes", page.size()}}, fmt::format("{} ({} bytes)\n", out.string(), page.size())};
}

void add_report(CLI::App& program) {
  auto flags = std::make_shared<ReportFlags>();
  CLI::App* command = add_command(program, "report", "one self-contained HTML page about one run, or several side by side",
                                  [flags](const CommonFlags& common) { return run_report(common, *flags); });
  command
      ->add_option("RUN", flags->runs,
                   "run folders, folders of run --seeds or --sweep; the first is what others are compared with. With --serve "
                   "also a folder of runs, which may still be empty")
      ->required();
  command->add_option("--out", flags->out, "the page (default: report.html in the first run's folder)");
  command->add_option("--tensorboard", flags->tensorboard, "also write TensorBoard event files to this folder");
  command->add_option("--csv", flags->csv,
                      "also write comma-separated values to this folder: a file for each run, and runs.csv");
  command->add_flag("--serve", flags->serve, "serve a live page on 127.0.0.1 instead of writing a file");
  command->add_option("--port", flags->port, "port for --serve (0: any free port)")->check(CLI::Range(0, 65535));
}

}  // namespace fairway::app
