// Faults made on purpose: FAIRWAY_FAULT=KIND:N lets the N-th file operation of this process go wrong. The kinds are
//   fail   it fails once, with an input/output error
//   full   from then on the disk takes nothing more
//   short  it moves half of its bytes (reads and writes only)
//   stop   the process is killed there, in the middle of a write
//   power  as stop, and what was not synced is gone: bytes of files, and renames
//   reorder as power, but every rename came to the disk, before the bytes of what it names
// and of events that are none:
//   memory the N-th large allocation on the host finds no memory
//   room   the N-th allocation on a device finds none there
//   device from the N-th wait for a device on it is lost
//   nan    the gradient of the N-th micro-batch is not a number
// Each fault is told on standard error, and so is the number of operations or events at the end of the process.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace fairway::fault {

enum class Operation { open, create, read, write, sync, truncate, rename, remove, make_folder };

enum class Event { memory, room, device, nan };

extern const bool armed;  // whether any was asked for: all an ordinary run looks at

// Whether the operation may be done; else errno is set. A process that is to stop there does not come back.
bool passes(Operation operation, const std::filesystem::path& path);

// The same for `bytes` that move: how many of them may; none: the operation fails. Where it is to stop, `move` is called with
// half of them first.
size_t share_of(Operation operation, int fd, size_t bytes, ssize_t (*move)(void* context, size_t bytes), void* context);

// Whether this event is the one that goes wrong.
bool strikes(Event event);

// What the power's end has to know: what became of names and of bytes that were not synced.
void before_rename(const std::filesystem::path& from, const std::filesystem::path& to);
void after_sync(const std::filesystem::path& path);

std::filesystem::path path_of(int fd);

}  // namespace fairway::fault
