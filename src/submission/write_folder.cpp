#include "submission/write_folder.h"

#include <fmt/core.h>

#include "base/disk.h"
#include "base/error.h"
#include "base/file.h"
#include "base/writer_lock.h"

namespace fairway::submission {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// Debian packages that the sources of a record need.
constexpr const char* kRequirements =
    "# Debian 12 packages\ng++\ncmake\nninja-build\npkg-config\nlibfmt-dev\nnlohmann-json3-dev\nlibtomlplusplus-dev\n"
    "libssl-dev\nlibopenmpi-dev\nopenmpi-bin\nlibbrotli-dev\nliblzma-dev\n7zip\n";
constexpr const char* kCudaRequirements =
    "# for the GPU: the CUDA 13 toolkit with cuBLASLt, cuDNN 9 with its frontend headers, and NCCL\n";

// How a program is started as the runs were.
std::string launch_line(const RunFacts& run, const std::string& program) {
  return (run.ranks > 1 ? fmt::format("mpirun -n {} ", run.ranks) : "") + program;
}

// Each seed with the budget that its artifact was packed for: the sources do not know their own bytes.
std::string run_script(std::span<const RunFacts> runs, const std::string& unpack) {
  std::string text = "#!/bin/sh\n# sh run.sh SHARDS: builds the sources and repeats every seed in runs/.\nset -eu\n" + unpack +
                     "\ncmake -S source -B source/build -G Ninja -DCMAKE_BUILD_TYPE=Release\ncmake --build source/build\n";
  for (const RunFacts& run : runs) {
    text += fmt::format("{1} recipe.toml --data \"$1\" --out runs/seed{0} --seed {0} --backend {2}", run.seed(),
                        launch_line(run, "source/build/bin/fairway-record"), run.backend);
    if (const uint64_t budget = run.pack.value("budget", uint64_t{0}); budget > 0) text += fmt::format(" --budget {}", budget);
    text += run.pack.value("as_published", false) ? " --as-published\n" : "\n";
  }
  return text;
}

void write_files(const fs::path& folder, std::span<const RunFacts> runs, const About& about, const Sources& sources,
                 const ordered_json& submission) {
  write_file_atomic(folder / "README.md", readme_text(runs, about, submission));
  write_file_atomic(folder / "submission.json", submission.dump(2) + "\n");
  write_file_atomic(folder / "recipe.toml", to_toml(runs.front().recipe));
  write_file_atomic(folder / "source.7z", sources.bundle);
  write_file_atomic(folder / "requirements.txt",
                    std::string(kRequirements) + (runs.front().backend == "cuda" ? kCudaRequirements : ""));
  write_file_atomic(folder / "run.sh", run_script(runs, sources.unpack));
  for (const RunFacts& run : runs) {
    write_file_atomic(folder / fmt::format("train_seed{}.log", run.seed()), run.log);
    write_file_atomic(folder / fmt::format("receipt_seed{}.json", run.seed()), run.receipt.dump(2) + "\n");
    if (about.artifacts)
      write_file_atomic(folder / fmt::format("model_seed{}.fwy", run.seed()), read_file(run.folder / "model.fwy"));
  }
}

}  // namespace

ordered_json write_folder(const fs::path& out, std::span<const RunFacts> runs, const About& about, const Sources& sources,
                          const std::function<void(const fs::path&)>& check) {
  if (fs::exists(out)) throw InputError("--out " + out.string() + ": already exists; choose another folder or remove it");
  const ordered_json submission = submission_json(runs, about, sources);  // may refuse, so before anything is written
  fs::path whole = fs::absolute(out).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();  // "folder/"
  const auto make_folder = [&](const fs::path& folder) {
    if (const std::error_code error = disk::make_folders(folder))
      throw InputError("--out " + out.string() + ": cannot be created (" + error.message() + ")");
  };
  make_folder(whole.parent_path());
  const WriterLock lock = WriterLock::of_file(whole);
  const fs::path making = whole.parent_path() / ("." + whole.filename().string() + ".making");  // a killed writer's is ours too
  remove_file(making);
  make_folder(making);
  try {
    write_files(making, runs, about, sources, submission);
    if (check) check(making);
    move_file(making, whole);
  } catch (...) {
    disk::remove_all(making);
    throw;
  }
  return submission;
}

}  // namespace fairway::submission
