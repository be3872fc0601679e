// What `quantize` and `pack` share: the flags of a request.
#pragma once

#include "app/command.h"
#include "stages/requests.h"

namespace fairway::app {

void add_quantizing_flags(CLI::App& command, const std::shared_ptr<QuantizeRequest>& request);

}  // namespace fairway::app
