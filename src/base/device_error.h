// A device that did not do its work: no room, lost, or a kernel that failed. Whoever keeps checkpoints adds where to go on.
#pragma once

#include "base/error.h"

namespace fairway {

class DeviceError : public WorkError {
 public:
  using WorkError::WorkError;
};

}  // namespace fairway
