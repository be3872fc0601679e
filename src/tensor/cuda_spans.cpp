#include "tensor/cuda_spans.h"

#include <vector>

namespace fairway::cuda {

struct StreamSpans::Recorded {
  struct Span {
    std::string name;
    cudaEvent_t begin = nullptr, end = nullptr;
  };
  cudaEvent_t origin = nullptr;
  double origin_seconds = 0;
  std::vector<Span> spans;

  explicit Recorded(cudaStream_t stream) {
    cudaEventCreate(&origin);
    cudaEventRecord(origin, stream);
    cudaEventSynchronize(origin);
    origin_seconds = seconds_now();
  }
  ~Recorded() {
    for (const Span& span : spans) {
      cudaEventDestroy(span.begin);
      cudaEventDestroy(span.end);
    }
    cudaEventDestroy(origin);
  }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;

  void tell(Timeline& timeline, Lane lane) const {
    for (const Span& span : spans) {
      float before = 0, length = 0;
      if (cudaEventSynchronize(span.end) != cudaSuccess || cudaEventElapsedTime(&before, origin, span.begin) != cudaSuccess ||
          cudaEventElapsedTime(&length, span.begin, span.end) != cudaSuccess)
        continue;
      const double begin = origin_seconds + static_cast<double>(before) * 1e-3;
      timeline.add(span.name, lane, begin, begin + static_cast<double>(length) * 1e-3);
    }
  }
};

StreamSpans::StreamSpans(Lane lane) : lane_(lane) {}
StreamSpans::~StreamSpans() = default;

void StreamSpans::begin(const std::string& name, cudaStream_t stream) {
  Timeline* timeline = Timeline::active();
  if (timeline == nullptr) return;
  if (!recorded_) {
    recorded_ = std::make_shared<Recorded>(stream);
    timeline->before_reading([recorded = recorded_, lane = lane_](Timeline& to) { recorded->tell(to, lane); });
  }
  Recorded::Span& span = recorded_->spans.emplace_back(Recorded::Span{name});
  cudaEventCreate(&span.begin);
  cudaEventCreate(&span.end);
  cudaEventRecord(span.begin, stream);
}

void StreamSpans::end(cudaStream_t stream) {
  if (Timeline::active() != nullptr && recorded_) cudaEventRecord(recorded_->spans.back().end, stream);
}

}  // namespace fairway::cuda
