#include "stages/guarded_main.h"

#include <new>
#include <stdexcept>
#include <system_error>

#include "base/error.h"
#include "base/output.h"
#include "base/rank_failure.h"
#include "comm/launch.h"
#include "comm/own_ranks.h"

namespace fairway {
namespace {

// Before the processes have met, all fail alike and rank 0 speaks.
int fail_with(const TellFailure& tell, const std::string& words, int status) {
  const std::string sentence = printable(words);
  if (Communicator* comm = world_if_made()) comm->end_all(sentence, status);
  const Launch launch = find_launch();
  if (told_to_parent(launch, sentence, status)) return status;
  if (launch.kind != Launch::Kind::mpi || launch.rank == 0) tell(sentence, status);
  return status;
}

}  // namespace

void tell_failure(const std::string& sentence, int) { print_err(sentence + "\n"); }

int guarded_main(const std::string& program, const std::function<int()>& work, const TellFailure& tell) {
  guard_standard_streams();
  const auto fail = [&](const std::string& words, int status) { return fail_with(tell, words, status); };
  try {
    const int status = work();
    require_output_written();
    leave_world();
    return status;
  } catch (const InputError& error) {
    return fail(program + ": " + error.what(), 2);
  } catch (const RankFailure& failure) {
    return fail(failure.what(), failure.status());
  } catch (const std::bad_alloc&) {
    return fail(program + ": out of memory", 1);
  } catch (const std::length_error&) {  // what a container says when asked for more than any memory has
    return fail(program + ": out of memory", 1);
  } catch (const std::system_error& error) {
    const bool thread = error.code() == std::errc::resource_unavailable_try_again;
    return fail(program + ": " + error.what() + (thread ? ": no memory is left for a thread; give fewer --threads" : ""), 1);
  } catch (const std::exception& error) {
    return fail(program + ": " + error.what(), 1);
  }
}

}  // namespace fairway
