#include "comm/nccl_library.h"

#include <dlfcn.h>

namespace fairway {
namespace {

struct Opened {
  NcclLibrary library;
  bool found = false;
  std::string problem;

  Opened() {
    void* handle = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      problem = dlerror();
      return;
    }
    found = true;
    take(handle, "ncclGetVersion", library.get_version);
    take(handle, "ncclGetUniqueId", library.get_unique_id);
    take(handle, "ncclCommInitRank", library.init_rank);
    take(handle, "ncclCommDestroy", library.destroy);
    take(handle, "ncclCommAbort", library.abort);
    take(handle, "ncclCommGetAsyncError", library.async_error);
    take(handle, "ncclGetErrorString", library.error_string);
    take(handle, "ncclGroupStart", library.group_start);
    take(handle, "ncclGroupEnd", library.group_end);
    take(handle, "ncclSend", library.send);
    take(handle, "ncclRecv", library.recv);
    take(handle, "ncclAllReduce", library.all_reduce);
    take(handle, "ncclBroadcast", library.broadcast);
  }

  template <class Function>
  void take(void* handle, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    if (function != nullptr) return;
    found = false;
    problem = std::string("libnccl.so.2 has no ") + name;
  }
};

const Opened& opened() {
  static const Opened once;
  return once;
}

}  // namespace

const NcclLibrary* NcclLibrary::open() { return opened().found ? &opened().library : nullptr; }
const std::string& NcclLibrary::why_not() { return opened().problem; }

}  // namespace fairway
