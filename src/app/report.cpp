// `fairway report`: a page about one run or several; with --serve, a live one.
#include <fmt/core.h>

#include <filesystem>
#include <map>

#include "app/named_inputs.h"
#include "app/stages.h"
#include "base/error.h"
#include "base/file.h"
#include "base/signals.h"
#include "base/writer_lock.h"
#include "report/page.h"
#include "report/serve.h"
#include "report/tensorboard.h"

namespace fairway::app {
namespace {

namespace fs = std::filesystem;

struct ReportFlags {
  std::vector<std::string> runs;
  std::string out, tensorboard;
  bool serve = false;
  int port = 0;
};

int serve_runs(const CommonFlags& common, const ReportFlags& flags, const std::vector<fs::path>& folders) {
  const StopSignals signals;
  const auto data = [&] { return report_data(folders, true); };
  serve_report(
      static_cast<uint16_t>(flags.port),
      {.page = [&] { return report_page(data()); },
       .data = [&] { return data().dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace); }},
      [&](uint16_t port) {
        print_result(common, {{"url", fmt::format("http://127.0.0.1:{}/", port)}, {"port", port}},
                     fmt::format("http://127.0.0.1:{}/ (end with Ctrl-C)\n", port));
      },
      [&] { return signals.requested(); });
  return 0;
}

// The last part of its path, also of "runs/a/" and ".".
std::string run_name(const fs::path& folder) {
  const fs::path whole = fs::absolute(folder).lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

int run_report(const CommonFlags& common, const ReportFlags& flags) {
  for (const std::string& run : flags.runs) require_run(run);
  const std::vector<fs::path> folders(flags.runs.begin(), flags.runs.end());
  if (flags.serve && !flags.out.empty()) throw InputError("--serve writes no file; leave out --out");
  if (flags.serve) {
    report_data(folders, false);  // what cannot be read is refused before anything is served
    return serve_runs(common, flags, folders);
  }
  const fs::path path = flags.out.empty() ? folders.front() / "report.html" : fs::path(flags.out);
  auto [status, result, text] = do_report(folders, path);
  if (!flags.tensorboard.empty()) {
    std::map<std::string, int> taken;  // a/run and b/run are two runs
    for (const fs::path& folder : folders) {
      std::string name = run_name(folder);
      if (const int earlier = taken[name]++; earlier > 0) name += fmt::format("-{}", earlier + 1);
      const std::string events = write_tensorboard(folder, fs::path(flags.tensorboard) / name).string();
      result["tensorboard"].push_back(events);
      text += events + "\n";
    }
  }
  print_result(common, result, text);
  return status;
}

}  // namespace

pipeline::Outcome do_report(const std::vector<std::filesystem::path>& folders, const std::filesystem::path& out) {
  const std::string page = report_page(report_data(folders, false));
  const WriterLock lock = WriterLock::of_file(out);
  write_file_atomic(out, page);
  return {0, {{"path", out.string()}, {"bytes", page.size()}}, fmt::format("{} ({} bytes)\n", out.string(), page.size())};
}

void add_report(CLI::App& program) {
  auto flags = std::make_shared<ReportFlags>();
  CLI::App* command = add_command(program, "report", "one self-contained HTML page about one run, or several side by side",
                                  [flags](const CommonFlags& common) { return run_report(common, *flags); });
  command->add_option("RUN", flags->runs, "run folders")->required();
  command->add_option("--out", flags->out, "the page (default: report.html in the first run's folder)");
  command->add_option("--tensorboard", flags->tensorboard, "also write TensorBoard event files to this folder");
  command->add_flag("--serve", flags->serve, "serve a live page on 127.0.0.1 instead of writing a file");
  command->add_option("--port", flags->port, "port for --serve (0: any free port)")->check(CLI::Range(0, 65535));
}

}  // namespace fairway::app
