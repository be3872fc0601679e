// A fuzzer without coverage feedback, for compilers without libFuzzer, for every `make test` and for long runs on many cores:
// the target's seeds and its kept corpus, then mutations of them from a fixed random seed. An input must not crash, run for
// more than kMostSeconds or take more than kMostBeyondClaim bytes beyond what the reader's own check of its claims allows. One
// that does is left in `crash_<target>`. Usage: fuzz_<target> [--inputs N] [--seconds S] [--seed K] [--threads T], or
// fuzz_<target> FILE, or fuzz_<target> --write-seeds FOLDER (for libFuzzer to start from).
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <thread>

#include "fuzz/allocations.h"
#include "fuzz/mutate.h"
#include "fuzz/targets.h"

extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));
extern "C" size_t __attribute__((weak)) LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed);

namespace {

using fairway::Rng;
using Clock = std::chrono::steady_clock;

constexpr double kMostSeconds = 20;  // of processor time: a busy machine is no hang
constexpr double kMostWait = 600;

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

struct Flags {
  int64_t inputs = 20'000;
  double seconds = 1e9;
  uint64_t seed = 1;
  int threads = 1;
  std::filesystem::path corpus = FAIRWAY_FUZZ_CORPUS;  // of all targets
};

double processor_seconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Worker {
  std::string input;
  std::atomic<int64_t> begun_ns{0};  // of the input at work; 0: none
  std::atomic<double> begun_at{0};   // the same on its thread's clock
  clockid_t clock = CLOCK_PROCESS_CPUTIME_ID;
  int64_t done = 0, accepted = 0, most_beyond = 0;
  double slowest = 0;
};
thread_local Worker* self = nullptr;
std::string crash_path;

void keep_input(const std::string& input) {
  const int file = ::open(crash_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  const bool whole = ::write(file, input.data(), input.size()) == static_cast<ssize_t>(input.size());
  ::close(file);
  std::fprintf(stderr, "the input of %zu bytes %s %s\n", input.size(), whole ? "lies in" : "could not be kept in",
               crash_path.c_str());
}
void keep_own_input() {
  if (self != nullptr) keep_input(self->input);
}

void run(Worker& worker, std::string bytes) {
  worker.input = std::move(bytes);
  // A copy of exactly this size, so that a read past its end is one past an allocation.
  const std::unique_ptr<uint8_t[]> exact(new uint8_t[worker.input.size()]);
  std::memcpy(exact.get(), worker.input.data(), worker.input.size());
  fuzz_note = {};
  reset_allocations();
  const auto begin = Clock::now();
  worker.begun_at = processor_seconds(worker.clock);
  worker.begun_ns = begin.time_since_epoch().count();
  LLVMFuzzerTestOneInput(exact.get(), worker.input.size());
  worker.begun_ns = 0;
  worker.slowest = std::max(worker.slowest, since(begin));
  worker.accepted += fuzz_note.accepted ? 1 : 0;
  const int64_t beyond = most_allocated() - static_cast<int64_t>(fuzz_note.claim);
  worker.most_beyond = std::max(worker.most_beyond, beyond);
  if (beyond > kMostBeyondClaim) {
    std::fprintf(stderr, "an input took %lld bytes beyond its claim of %llu\n", static_cast<long long>(beyond),
                 static_cast<unsigned long long>(fuzz_note.claim));
    std::abort();
  }
}

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

struct Seeds {
  std::vector<std::string> own;   // the target's: most of them are read to their end
  std::vector<std::string> kept;  // tests/fuzz/corpus: what libFuzzer found to reach further, mostly refused late
};

Seeds all_seeds(const std::filesystem::path& corpus) {
  Seeds seeds{fuzz_seeds(), {}};
  std::set<std::filesystem::path> files;
  if (std::filesystem::is_directory(corpus))
    for (const auto& entry : std::filesystem::directory_iterator(corpus)) files.insert(entry.path());
  for (const std::filesystem::path& file : files) seeds.kept.push_back(contents(file));
  return seeds;
}

// Of long seeds one in sixteen is taken: they cost more, and what they hold beside the short ones is mostly length.
const std::string& chosen(const Seeds& seeds, Rng& rng) {
  constexpr size_t kLong = 8192;
  const std::vector<std::string>& from = seeds.kept.empty() || rng.below(2) == 0 ? seeds.own : seeds.kept;
  for (int tries = 0; tries < 8; ++tries) {
    const std::string& seed = from[rng.below(from.size())];
    if (seed.size() <= kLong || rng.below(16) == 0) return seed;
  }
  return from[rng.below(from.size())];
}

std::string changed(const Seeds& seeds, Rng& rng) {
  std::string bytes = chosen(seeds, rng);
  if (&LLVMFuzzerCustomMutator == nullptr) {
    for (uint64_t i = 1 + rng.below(6); i > 0; --i) mutate(bytes, chosen(seeds, rng), rng);
    return bytes;
  }
  const size_t size = bytes.size();
  bytes.resize(std::min(2 * size + 4096, kMostInputBytes));
  bytes.resize(LLVMFuzzerCustomMutator(reinterpret_cast<uint8_t*>(bytes.data()), size, bytes.size(),
                                       static_cast<unsigned>(rng.next_u64())));
  return bytes;
}

void work(Worker& worker, const Seeds& seeds, int64_t inputs, const Flags& flags, uint64_t stream) {
  self = &worker;
  pthread_getcpuclockid(pthread_self(), &worker.clock);
  Rng rng(flags.seed, 2 * stream);
  seed_mutations(flags.seed, 2 * stream + 1);
  const auto begin = Clock::now();
  for (; worker.done < inputs && !(worker.done % 16 == 0 && since(begin) > flags.seconds); ++worker.done)
    run(worker, changed(seeds, rng));
  self = nullptr;
}

// Ends the program when an input takes too long.
void watch(const std::vector<std::unique_ptr<Worker>>& workers, const std::atomic<bool>& over) {
  for (int tick = 0; !over; ++tick) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const int64_t now = Clock::now().time_since_epoch().count();
    for (const auto& worker : workers) {
      const int64_t begun = worker->begun_ns;
      const double waited = static_cast<double>(now - begun) * 1e-9;
      if (begun == 0 || waited < kMostSeconds) continue;
      if (waited < kMostWait && processor_seconds(worker->clock) - worker->begun_at < kMostSeconds) continue;
      std::fprintf(stderr, "an input runs for more than %.0f s, or waits for %.0f\n", kMostSeconds, kMostWait);
      keep_input(worker->input);
      std::_Exit(1);
    }
  }
}

int fuzz(const Flags& flags, const char* name) {
  const Seeds seeds = all_seeds(flags.corpus / std::string(name).substr(std::string_view(name).find('_') + 1));
  std::vector<std::unique_ptr<Worker>> workers;
  for (int i = 0; i < flags.threads; ++i) workers.push_back(std::make_unique<Worker>());
  std::atomic<bool> over{false};
  std::thread watcher([&] { watch(workers, over); });
  self = workers[0].get();
  for (const auto& list : {seeds.own, seeds.kept})
    for (const std::string& bytes : list) run(*workers[0], bytes);
  const int64_t seeds_read = workers[0]->accepted;
  workers[0]->accepted = 0;
  const auto begin = Clock::now();
  std::vector<std::thread> threads;
  for (int i = 0; i < flags.threads; ++i) {
    const int64_t share = flags.inputs / flags.threads + (i < flags.inputs % flags.threads ? 1 : 0);
    threads.emplace_back(
        [&, share, i] { work(*workers[static_cast<size_t>(i)], seeds, share, flags, static_cast<uint64_t>(i)); });
  }
  for (std::thread& thread : threads) thread.join();
  const double seconds = since(begin);
  over = true;
  watcher.join();
  Worker all;
  for (const auto& worker : workers) {
    all.done += worker->done, all.accepted += worker->accepted;
    all.most_beyond = std::max(all.most_beyond, worker->most_beyond), all.slowest = std::max(all.slowest, worker->slowest);
  }
  std::printf(
      "%s: %zu seeds (%lld read), %lld inputs in %.1f s (%.0f a second, %d threads), %lld read, %lld refused, "
      "at most %.2f MB beyond the claim, slowest %.3f s, no crash\n",
      name, seeds.own.size() + seeds.kept.size(), static_cast<long long>(seeds_read), static_cast<long long>(all.done), seconds,
      static_cast<double>(all.done) / seconds, flags.threads, static_cast<long long>(all.accepted),
      static_cast<long long>(all.done - all.accepted), static_cast<double>(all.most_beyond) * 1e-6, all.slowest);
  return all.done > 0 && seeds_read > 0 ? 0 : 1;
}

bool parse(int count, char** arguments, Flags& flags) {
  for (int i = 1; i < count; i += 2) {
    const std::string flag = arguments[i];
    if (i + 1 == count) return false;
    const char* value = arguments[i + 1];
    if (flag == "--inputs") {
      flags.inputs = std::atoll(value);
    } else if (flag == "--seconds") {
      flags.seconds = std::atof(value);
    } else if (flag == "--seed") {
      flags.seed = std::strtoull(value, nullptr, 10);
    } else if (flag == "--corpus") {
      flags.corpus = value;
    } else if (flag == "--threads") {
      flags.threads = std::max(1, std::atoi(value));
    } else {
      return false;
    }
  }
  return true;
}

int write_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  int number = 0;
  for (const std::string& seed : fuzz_seeds())
    if (!(std::ofstream(folder / ("seed" + std::to_string(number++)), std::ios::binary) << seed).flush()) return 1;
  return 0;
}

void keep_inputs_of_crashes() {
  if (&__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(keep_own_input);
  } else {
    for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
      std::signal(number, [](int caught) {
        std::signal(caught, SIG_DFL);
        keep_own_input();
        std::raise(caught);
      });
    }
  }
  std::signal(SIGABRT, [](int) {
    std::signal(SIGABRT, SIG_DFL);
    keep_own_input();
    std::abort();
  });
}

}  // namespace

int main(int count, char** arguments) {
  const std::string path = arguments[0], name = path.substr(path.find_last_of('/') + 1);
  crash_path = "crash_" + name;
  keep_inputs_of_crashes();
  if (count == 2) {
    Worker worker;
    self = &worker;
    run(worker, contents(arguments[1]));
    return 0;
  }
  if (count == 3 && arguments[1] == std::string("--write-seeds")) return write_seeds(arguments[2]);
  Flags flags;
  if (parse(count, arguments, flags)) return fuzz(flags, name.c_str());
  std::fprintf(
      stderr,
      "usage: %s [--inputs N] [--seconds S] [--seed K] [--threads T] [--corpus FOLDER], %s FILE, or %s --write-seeds FOLDER\n",
      name.c_str(), name.c_str(), name.c_str());
  return 2;
}
