// How a rank polls for others: at first it keeps the core, then it offers it to whoever wants it, then it sleeps between looks.
#pragma once

#include <sched.h>
#include <unistd.h>

namespace fairway {

class Patience {
 public:
  void look_again() {
    constexpr int kBusy = 200, kYielding = 4000;  // looks
    constexpr useconds_t kNap = 20;
    if (++looks_ > kYielding)
      usleep(kNap);
    else if (looks_ > kBusy)
      sched_yield();
  }

 private:
  int looks_ = 0;
};

}  // namespace fairway
