// When work on a device's queue began and ended, for the timeline. Events are recorded into the queue and read at the end; the
// device's clock is tied to the host's by one event that the host waits for.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <string>

#include "base/timeline.h"

namespace fairway::cuda {

class StreamSpans {
 public:
  explicit StreamSpans(Lane lane);
  ~StreamSpans();
  StreamSpans(const StreamSpans&) = delete;
  StreamSpans& operator=(const StreamSpans&) = delete;

  // Nothing happens unless a timeline is recorded.
  void begin(const std::string& name, cudaStream_t stream);
  void end(cudaStream_t stream);

 private:
  struct Recorded;
  std::shared_ptr<Recorded> recorded_;  // also held by the timeline until it is read
  Lane lane_;
};

}  // namespace fairway::cuda
