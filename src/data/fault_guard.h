// Reads of mapped files that may have been cut short by someone else: the SIGBUS such a read raises becomes `false`.
#pragma once

namespace fairway::data {

// Runs body(context); false when it touched a page that the file no longer has. The body is left by a jump then, so it must be
// plain loops over plain data: no destructors, no locks, no allocation. May be called from many threads at once.
bool run_guarded(void (*body)(void*), void* context);

}  // namespace fairway::data
