// What main() of every program does around its work: errors become one sentence and an exit status.
#pragma once

#include <functional>
#include <string>

namespace fairway {

// `work` returns the exit status; InputError becomes 2, everything else that it throws 1. Of several processes the first to
// fail tells why and ends all.
int guarded_main(const std::string& program, const std::function<int()>& work);

}  // namespace fairway
