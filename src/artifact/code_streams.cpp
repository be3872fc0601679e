#include "artifact/code_streams.h"

#include <algorithm>
#include <functional>

#include "quant/quantize_model.h"

namespace fairway {
namespace {

// Streams are of unequal length, so that everything which may be asked of any of them is a task of its own: the parts in lanes,
// the forms that learn, the entropy of each tensor.
class StreamCoder {
 public:
  StreamCoder(const WeightStreams<const int8_t>& streams, const PackOptions& options)
      : streams_(streams), options_(options), found_(streams.size()) {
    for (size_t role = 0; role < streams.size(); ++role) plan(role);
    std::stable_sort(tasks_.begin(), tasks_.end(), [](const Task& a, const Task& b) { return a.cost > b.cost; });
    for_each_index(options.pool, tasks_.size(), [&](size_t i) { tasks_[i].work(); });
  }

  CodedWeights take() {
    CodedWeights out;
    out.streams.resize(streams_.size());
    for_each_index(options_.pool, streams_.size(), [&](size_t role) { out.streams[role] = chosen(role); });
    return out;
  }

 private:
  struct Task {
    double cost;  // about its time, in weights of lanes: the longest begin first
    std::function<void()> work;
  };
  struct Found {
    KnownForms forms;
    std::vector<LaneCode> parts;
    std::vector<double> entropies;  // bits
    bool pays = false;
  };

  void plan(size_t role) {
    constexpr double kLearning = 3, kSample = 3 << 18, kCounting = 0.1;
    const std::span<const WeightBlock> blocks = streams_[role];
    if (blocks.empty()) return;
    Found& own = found_[role];
    own.entropies.resize(blocks.size());
    for (size_t i = 0; i < blocks.size(); ++i)
      tasks_.push_back({kCounting * count(blocks.subspan(i, 1)), [&own, block = blocks[i], i] {
                          own.entropies[i] = entropy_of({block.q, static_cast<size_t>(block.rows * block.cols)}, block.trellis);
                        }});
    if (!is_ours(options_.codec)) return;
    const auto parts = lane_parts(blocks);
    own.parts.resize(parts.size());
    for (size_t i = 0; i < parts.size(); ++i)
      tasks_.push_back({count(parts[i]), [&own, part = parts[i], i] { own.parts[i] = encode_lane_part(part); }});
    if (is_short_stream(blocks))
      tasks_.push_back({kLearning * count(blocks), [&own, blocks] { own.forms.learnt = encode_weights(blocks); }});
    else
      tasks_.push_back({kSample, [&own, blocks] { own.pays = learning_pays(blocks); }});
  }

  static double count(std::span<const WeightBlock> blocks) {
    double weights = 0;
    for (const WeightBlock& block : blocks) weights += static_cast<double>(block.rows) * static_cast<double>(block.cols);
    return weights;
  }

  CodedStream chosen(size_t role) {
    Found& own = found_[role];
    CodedStream out;
    out.weights = static_cast<int64_t>(count(streams_[role]));
    for (const double bits : own.entropies) out.entropy_bits += bits;
    if (out.weights == 0) return out;
    own.forms.lanes = joined_lanes(own.parts);
    own.forms.order0_bytes = out.entropy_bits / 8;
    own.forms.learning_pays = own.pays;
    out.section = encode_weight_section(streams_[role], options_.codec, nullptr, std::move(own.forms));
    return out;
  }

  const WeightStreams<const int8_t>& streams_;
  const PackOptions& options_;
  std::vector<Found> found_;
  std::vector<Task> tasks_;
};

}  // namespace

CodedWeights code_streams(const WeightStreams<const int8_t>& streams, const PackOptions& options) {
  return StreamCoder(streams, options).take();
}

}  // namespace fairway
