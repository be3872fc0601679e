// TensorBoard event files: records of scalars, framed as TFRecord (length, masked CRC-32C, protobuf, masked CRC-32C).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace fairway {

uint32_t crc32c(std::string_view bytes);

class EventFile {
 public:
  explicit EventFile(double wall_time);
  void scalar(std::string_view tag, int64_t step, double wall_time, float value);
  const std::string& bytes() const { return bytes_; }

 private:
  void record(std::string_view event);
  std::string bytes_;
};

// events.out.tfevents.* in `folder`, from a run's records; returns its path.
std::filesystem::path write_tensorboard(const std::filesystem::path& run, const std::filesystem::path& folder);

}  // namespace fairway
