// What main() of every program does around its work: errors become one sentence and an exit status.
#pragma once

#include <functional>
#include <string>

namespace fairway {

using TellFailure = std::function<void(const std::string& sentence, int status)>;
void tell_failure(const std::string& sentence, int status);  // a line on standard error

// `work` returns the exit status; InputError becomes 2, everything else that it throws 1. Of several processes the first to
// fail tells why and ends all.
int guarded_main(const std::string& program, const std::function<int()>& work, const TellFailure& tell = tell_failure);

}  // namespace fairway
