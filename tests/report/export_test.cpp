// What other programs read: comma-separated values, and event files as TensorBoard's own reader sees them.
#include <cstdio>

#include "report/csv.h"
#include "report/report_fixture.h"
#include "report/tensorboard.h"

namespace fairway {
namespace {

std::string text_of(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_F(Report, CsvHasEveryNumberAsTheRunWroteIt) {
  write("metrics.jsonl",
        "{\"step\":1,\"loss\":3.6762009263038635}\n{\"step\":2,\"loss\":2.5,\"lr_scale\":0.5}\n"
        "{\"step\":2,\"val_loss\":3,\"val_bpb\":1.25}\n{\"st");
  write("timing.jsonl", "{\"step\":1,\"train_seconds\":0.25,\"step_ms\":250}\n");
  const std::string tokens = std::to_string(load_recipe("smoke").train.batch_tokens),
                    twice = std::to_string(2 * load_recipe("smoke").train.batch_tokens);
  EXPECT_EQ(text_of(write_steps_csv(folder_, folder_ / "csv", "one")),
            "step,tokens,train_seconds,step_ms,loss,grad_norm,lr_scale,momentum,val_loss,val_bpb\r\n1," + tokens +
                ",0.25,250,3.6762009263038635,,,,,\r\n2," + twice + ",,,2.5,,0.5,,3,1.25\r\n");
  write("score.json", R"({"mode":"sliding","val_bpb":1.125,"val_loss":2.75})");
  const std::vector<fs::path> runs{folder_};
  const std::vector<std::string> names{"a \"b\", c"};
  const std::string table = text_of(write_runs_csv(runs, names, folder_ / "csv"));
  EXPECT_NE(table.find("\r\n\"a \"\"b\"\", c\","), std::string::npos) << table;
  EXPECT_NE(table.find(",sliding,1.125,2.75,\r\n"), std::string::npos) << table;
}

// Python with the package tensorboard: FAIRWAY_TENSORBOARD_PYTHON, or the one on PATH.
std::string python() {
  const char* named = std::getenv("FAIRWAY_TENSORBOARD_PYTHON");
  return named != nullptr ? named : "python3";
}

TEST_F(Report, TensorBoardsOwnReaderFindsEveryScalar) {
  if (std::system((python() + " -c 'import tensorboard' >/dev/null 2>&1").c_str()) != 0)
    GTEST_SKIP() << "the package tensorboard is not installed for " << python()
                 << " (FAIRWAY_TENSORBOARD_PYTHON names another)";
  const fs::path events = write_tensorboard(folder_, folder_ / "events");
  write("read.py", R"(import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
found = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
found.Reload()
print(sorted(found.Tags()["scalars"]))
for tag in ("loss", "val_bpb"):
    scalars = found.Scalars(tag)
    print(tag, len(scalars), scalars[0].step, scalars[-1].step, "%.4f" % scalars[-1].value)
)");
  const std::string out = (folder_ / "read.txt").string();
  ASSERT_EQ(std::system((python() + " " + (folder_ / "read.py").string() + " " + events.parent_path().string() + " >" + out +
                         " 2>" + out + ".log")
                            .c_str()),
            0)
      << text_of(out + ".log");
  EXPECT_EQ(text_of(out),
            "['grad_norm', 'loss', 'lr_scale', 'momentum', 'val_bpb', 'val_loss']\nloss 1200 1 1200 6.8000\nval_bpb 1 1200 "
            "1200 3.5000\n");
}

}  // namespace
}  // namespace fairway
