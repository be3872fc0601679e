// Ranks over MPI. Nothing blocks inside the library: every call is started and then polled, so that a rank that fails or stops
// is noticed while the others wait for it. Tensors on a device pass through pinned host memory.
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <new>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "base/timeline.h"
#include "comm/device_staging.h"
#include "comm/launch.h"
#include "comm/mpi_start.h"
#include "comm/patience.h"
#include "comm/watchdog.h"

namespace fairway {
namespace {

// In memory that the ranks of one machine share.
struct Board {
  std::atomic<int> failed;  // 1 once a rank has printed why it ends
  Watchdog::Beat beats[1];  // one for each rank of the machine
};

size_t board_bytes(int ranks) { return sizeof(Board) + sizeof(Watchdog::Beat) * static_cast<size_t>(ranks); }

int element_count(const Tensor& tensor, int pieces) {
  FAIRWAY_ASSERT(tensor.device == Device::cpu, "MPI carries host memory only");
  const int64_t bytes = static_cast<int64_t>(tensor.spec.bytes()) / pieces;
  const int64_t count = bytes / static_cast<int64_t>(size_of(tensor.spec.dtype));
  FAIRWAY_ASSERT(count <= INT32_MAX, "a piece is larger than MPI counts");
  return static_cast<int>(count);
}

MPI_Datatype type_of(const Tensor& tensor) {
  switch (size_of(tensor.spec.dtype)) {
    case 8: return MPI_UINT64_T;
    case 4: return MPI_UINT32_T;
    case 2: return MPI_UINT16_T;
    default: return MPI_BYTE;
  }
}

class MpiRanks final : public Communicator {
 public:
  explicit MpiRanks(int promised_size);
  ~MpiRanks() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int local_size() const override { return local_size_; }
  void progress() override;
  [[noreturn]] void end_all(const std::string& sentence, int status) override;

 private:
  void do_barrier() override;
  void do_broadcast(const Tensor& data, int from) override;
  void do_all_reduce(std::span<double> values) override;
  Request do_start_exchange(const Tensor& full, const Tensor& received) override;
  Request do_start_all_gather(const Tensor& shard, const Tensor& full) override;
  Request do_start_gather(const Tensor& part, const Tensor& all, int64_t stride, int to) override;
  void do_wait(Request request) override;

  void share_board();
  void silent_rank(size_t local_rank);
  struct Flight {
    MPI_Request request = MPI_REQUEST_NULL;
    bool used = false;
    Tensor arrives;  // on a device: where its host twin goes at the end
    std::string name;
    double begun = 0;
  };
  Flight& begin(const char* kind, Request& id);
  Tensor outgoing(const Tensor& tensor);                  // in host memory, filled
  Tensor incoming(const Tensor& tensor, Flight& flight);  // in host memory
  void poll(MPI_Request& request);

  int rank_ = 0, size_ = 1, local_rank_ = 0, local_size_ = 1;
  MPI_Comm machine_ = MPI_COMM_NULL;
  MPI_Win window_ = MPI_WIN_NULL;
  Board* board_ = nullptr;
  std::vector<int> world_ranks_;      // of this machine's ranks
  std::atomic<int> silent_rank_{-1};  // found by the watchdog
  std::vector<Flight> flights_;
  std::map<std::tuple<int64_t, int, MPI_Datatype>, MPI_Datatype> spaced_;  // so many elements, so far apart
  DeviceStaging staging_;
  std::unique_ptr<Watchdog> watchdog_;  // last: its thread uses the rest
};

MpiRanks::MpiRanks(int promised_size) {
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  if (size_ != promised_size) {
    const std::string seen = std::to_string(size_);
    MPI_Finalize();
    throw InputError("the launcher started " + std::to_string(promised_size) + " processes, but MPI connects " + seen +
                     " of them; start with mpirun of the same MPI, or srun --mpi=pmix");
  }
  share_board();
  const double limit = watchdog_limit();
  watchdog_ = std::make_unique<Watchdog>(std::span(board_->beats, static_cast<size_t>(local_size_)),
                                         static_cast<size_t>(local_rank_), limit, [this](size_t r) { silent_rank(r); });
}

void MpiRanks::share_board() {
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &machine_);
  MPI_Comm_size(machine_, &local_size_);
  MPI_Comm_rank(machine_, &local_rank_);
  world_ranks_.resize(static_cast<size_t>(local_size_));
  MPI_Allgather(&rank_, 1, MPI_INT, world_ranks_.data(), 1, MPI_INT, machine_);
  void* base = nullptr;
  const auto bytes = static_cast<MPI_Aint>(local_rank_ == 0 ? board_bytes(local_size_) : 0);
  MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, machine_, &base, &window_);
  MPI_Aint size = 0;
  int unit = 0;
  MPI_Win_shared_query(window_, 0, &size, &unit, &base);
  board_ = static_cast<Board*>(base);
  if (local_rank_ == 0) {
    new (&board_->failed) std::atomic<int>(0);
    for (int i = 0; i < local_size_; ++i) new (&board_->beats[i]) Watchdog::Beat(0);
  }
  MPI_Barrier(machine_);
}

MpiRanks::~MpiRanks() {
  barrier();  // nobody leaves while another still needs the board
  watchdog_.reset();
  MPI_Win_free(&window_);
  MPI_Comm_free(&machine_);
  MPI_Finalize();
}

// The main thread ends everyone when it next waits. When it is deep in work this thread does, without MPI: launchers end the
// other ranks when one leaves with a failure.
void MpiRanks::silent_rank(size_t local_rank) {
  constexpr unsigned kGrace = 3;  // seconds
  silent_rank_ = world_ranks_[local_rank];
  sleep(kGrace);
  if (board_->failed.exchange(1) == 0)
    std::fprintf(stderr, "fairway: rank %d does not answer (stopped?); the run ends\n", silent_rank_.load());
  std::fflush(stderr);
  _exit(1);
}

void MpiRanks::end_all(const std::string& sentence, int status) {
  constexpr unsigned kGrace = 10;  // seconds, for the rank that was first to end this one
  if (board_->failed.exchange(1) != 0) {
    sleep(kGrace);
    _exit(status);
  }
  std::fprintf(stderr, "%s\n", sentence.c_str());
  std::fflush(stdout);
  std::fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, status);
  _exit(status);
}

MpiRanks::Flight& MpiRanks::begin(const char* kind, Request& id) {
  for (id = 0; id < flights_.size() && flights_[id].used; ++id) {}
  Flight& flight = id < flights_.size() ? flights_[id] : flights_.emplace_back();
  flight.used = true;
  flight.arrives = {};
  flight.begun = Timeline::active() != nullptr ? seconds_now() : 0;
  flight.name = take_name(kind);
  return flight;
}

Tensor MpiRanks::outgoing(const Tensor& tensor) {
  return tensor.device == Device::cpu ? tensor : staging_.bring(tensor, *followed());
}

Tensor MpiRanks::incoming(const Tensor& tensor, Flight& flight) {
  if (tensor.device == Device::cpu) return tensor;
  flight.arrives = tensor;
  return staging_.host_of(tensor);
}

void MpiRanks::poll(MPI_Request& request) {
  int done = 0;
  for (Patience patience;; patience.look_again()) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done != 0) return;
    if (const int silent = silent_rank_.load(std::memory_order_relaxed); silent >= 0)
      end_all("fairway: rank " + std::to_string(silent) + " does not answer (stopped?); the run ends", 1);
  }
}

void MpiRanks::progress() {
  int done = 0;
  for (const Flight& flight : flights_) {
    if (flight.used) MPI_Request_get_status(flight.request, &done, MPI_STATUS_IGNORE);
  }
}

void MpiRanks::do_wait(Request request) {
  const TimelineRange waiting("wait for ranks");
  Flight& flight = flights_[request];
  poll(flight.request);
  if (flight.arrives) staging_.put(flight.arrives, *followed());
  flight.used = false;
  if (Timeline* timeline = Timeline::active(); timeline != nullptr && flight.begun > 0)
    timeline->add(flight.name, Lane::network, flight.begun, seconds_now());
}

void MpiRanks::do_barrier() {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  poll(request);
}

void MpiRanks::do_broadcast(const Tensor& data, int from) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibcast(data.data, element_count(data, 1), type_of(data), from, MPI_COMM_WORLD, &request);
  poll(request);
}

void MpiRanks::do_all_reduce(std::span<double> values) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
  poll(request);
}

Communicator::Request MpiRanks::do_start_exchange(const Tensor& full, const Tensor& received) {
  Request id = 0;
  Flight& flight = begin("exchange", id);
  const Tensor from = outgoing(full), to = incoming(received, flight);
  const int count = element_count(from, size_);
  MPI_Ialltoall(from.data, count, type_of(from), to.data, count, type_of(from), MPI_COMM_WORLD, &flight.request);
  return id;
}

Communicator::Request MpiRanks::do_start_all_gather(const Tensor& shard, const Tensor& full) {
  Request id = 0;
  Flight& flight = begin("gather", id);
  const Tensor from = outgoing(shard), to = incoming(full, flight);
  const int count = element_count(from, 1);
  MPI_Iallgather(from.data, count, type_of(from), to.data, count, type_of(from), MPI_COMM_WORLD, &flight.request);
  return id;
}

Communicator::Request MpiRanks::do_start_gather(const Tensor& part, const Tensor& all, int64_t stride, int to) {
  FAIRWAY_ASSERT(part.device == Device::cpu, "slices of a device's gradient do not travel over MPI");
  Request id = 0;
  Flight& flight = begin("slice", id);
  const MPI_Datatype type = type_of(part);
  const int count = element_count(part, 1);
  MPI_Datatype& spaced = spaced_[{stride, count, type}];
  if (spaced == MPI_Datatype{}) {  // one part counts as `stride` elements on arrival
    MPI_Datatype whole = type;
    MPI_Type_contiguous(count, type, &whole);
    MPI_Type_create_resized(whole, 0, static_cast<MPI_Aint>(stride * static_cast<int64_t>(size_of(part.spec.dtype))), &spaced);
    MPI_Type_commit(&spaced);
    MPI_Type_free(&whole);
  }
  MPI_Igather(part.data, count, type, rank_ == to ? all.data : nullptr, 1, spaced, to, MPI_COMM_WORLD, &flight.request);
  return id;
}

}  // namespace

bool mpi_in_build() { return true; }

std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);  // allowed before MPI starts
  const std::string all(text, static_cast<size_t>(length));
  return all.substr(0, all.find(','));
}

std::unique_ptr<Communicator> start_mpi(int promised_size) { return std::make_unique<MpiRanks>(promised_size); }

}  // namespace fairway
