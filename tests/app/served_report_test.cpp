// `report --serve` as a process: it serves until a signal ends it.
#include <gmock/gmock.h>
#include <unistd.h>

#include <csignal>

#include "app/world.h"

namespace {

TEST(ServedReport, EndsAtASignal) {
  const ScratchFolder scratch;
  const std::string data = scratch / "data", run = scratch / "run", said = scratch / "said";
  make_data(data);
  ASSERT_EQ(run_program(train_smoke(data, run, {"--steps", "2", "--quiet"})).status, 0);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    Child child({"report", run, "--serve"}, {"sh", "-c", "exec \"$@\" >" + said, "sh"});
    while (child.running() && contents(said).find("http://127.0.0.1:") == std::string::npos) ::usleep(5'000);
    child.send(signal);
    const Outcome outcome = child.wait();
    EXPECT_EQ(outcome.signal, 0) << signal << outcome.text();
    EXPECT_EQ(outcome.status, 0) << signal << outcome.text();
    put_file(said, "");
  }
}

}  // namespace
