#include "autograd/executor.h"

namespace fairway {

std::string_view backend_name(Backend backend) {
  switch (backend) {
    case Backend::ref: return "ref";
    case Backend::cpu: return "cpu";
    case Backend::cuda: return "cuda";
    case Backend::cuda_f32: return "cuda-f32";
  }
  return "?";
}

void Session::run(const Observer& observer) {
  auto point = program().observed.begin();
  run_told([&](size_t call) {
    for (; point != program().observed.end() && point->call == call; ++point) observer(point->name, fetch(point->value));
  });
}

}  // namespace fairway
