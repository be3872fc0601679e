// A record does without the reference backend.
#include "ops/ref/executor.h"
#include "base/error.h"

namespace fairway {

std::unique_ptr<Executor> make_ref_executor(Queue&) { throw InputError("--backend ref: not part of a record's sources"); }

}  // namespace fairway
