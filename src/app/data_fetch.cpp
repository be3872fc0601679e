// `fairway data fetch`: shards and tokenizers from mirrors, each file checked by its SHA-256.
#include <fmt/core.h>

#include "app/command.h"
#include "base/error.h"
#include "base/file.h"
#include "base/progress_line.h"
#include "base/signals.h"
#include "fetch/fetch.h"
#include "fetch/http.h"
#include "pipeline/stages.h"

namespace fairway::app {
namespace {

struct FetchFlags {
  std::string set, manifest, out;
  std::vector<std::string> mirrors;
  int64_t shards = -1;
  double stall_seconds = 30;
};

fetch::FileSet listed_set(const FetchFlags& flags) {
  if (flags.manifest.empty())
    throw InputError("data fetch " + flags.set +
                     ": needs --manifest, a file or address that lists names, sizes and SHA-256 of the files; this program has "
                     "none built in (docs/data.md tells what the list looks like)");
  const bool remote = fetch::is_address(flags.manifest);
  const std::string text = remote ? fetch::http_read(flags.manifest, fetch::kMostManifestBytes, flags.stall_seconds)
                                  : read_file(flags.manifest, fetch::kMostManifestBytes);
  const std::string base = remote ? flags.manifest.substr(0, flags.manifest.rfind('/') + 1) : "";
  fetch::FileSet set = fetch::find_set(fetch::parse_fetch_manifest(text, flags.manifest, base), flags.set, flags.manifest);
  std::vector<std::string> mirrors;
  for (const std::string& mirror : flags.mirrors) mirrors.push_back(fetch::mirror_address(mirror));
  set.mirrors.insert(set.mirrors.begin(), mirrors.begin(), mirrors.end());
  return set;
}

std::string progress_text(const fetch::FetchProgress& p) {
  const double rate = p.seconds > 0 ? static_cast<double>(p.fetched) / p.seconds : 0;
  const double left = rate > 0 ? static_cast<double>(p.of_bytes - p.bytes) / rate : 0;
  return fmt::format("{}  file {} of {}  {}B of {}B  {}B/s  {} left", p.file, p.number, p.files,
                     quantity_text(static_cast<double>(p.bytes)), quantity_text(static_cast<double>(p.of_bytes)),
                     quantity_text(rate), duration_text(left));
}

int run_fetch(const CommonFlags& common, const FetchFlags& flags) {
  if (!fetch::http_in_build())
    throw InputError("data fetch: built without libcurl; apt-get install libcurl4-openssl-dev, then make build");
  fetch::FetchOptions options{.set = listed_set(flags), .out = flags.out, .stall_seconds = flags.stall_seconds};
  if (flags.shards >= 0) options.shards = flags.shards;
  const GoesOn goes_on("", common.quiet);
  const StopSignals signals;
  ProgressLine line(common.quiet);
  options.progress = [&](const fetch::FetchProgress& p) {
    if (line.due()) line.show(progress_text(p));
  };
  options.say = [&](const std::string& text) { line.say(text); };
  options.stop = [&] { return signals.requested(); };
  const fetch::FetchResult r = fetch::fetch(options);
  print_result(common,
               {{"path", flags.out},
                {"set", flags.set},
                {"files", r.files},
                {"fetched_files", r.fetched_files},
                {"bytes", r.bytes},
                {"fetched_bytes", r.fetched_bytes},
                {"resumed_bytes", r.resumed_bytes},
                {"seconds", r.seconds},
                {"interrupted", r.stopped}},
               r.stopped
                   ? "stopped\n"
                   : fmt::format("{} files, {} bytes in {}: {} fetched ({} bytes in {:.1f} s), all with the right SHA-256\n",
                                 r.files, r.bytes, flags.out, r.fetched_files, r.fetched_bytes, r.seconds));
  return goes_on.told(r.stopped ? pipeline::kInterrupted : 0);
}

}  // namespace

void add_fetch(CLI::App& data) {
  auto flags = std::make_shared<FetchFlags>();
  CLI::App* command = add_command(data, "fetch", "fetch shards and a tokenizer, and check every byte",
                                  [flags](const CommonFlags& common) { return run_fetch(common, *flags); });
  command->add_option("NAME", flags->set, "the set of files, as the list names it")->required();
  command->add_option("--out", flags->out, "folder for the files")->required();
  command->add_option("--manifest", flags->manifest, "the list: a file, or an address (http, https)");
  command->add_option("--mirror", flags->mirrors, "address to try before those of the list (repeatable)");
  command->add_option("--shards", flags->shards, "fetch only this many training shards, the first ones (default: all)")
      ->check(CLI::Range(0, 100000));
  command->add_option("--stall-seconds", flags->stall_seconds, "give up on a mirror that sends nothing for this long")
      ->capture_default_str()
      ->check(number_between(1, 3600));
}

}  // namespace fairway::app
