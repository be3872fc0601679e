// `fairway score FILE --text T`: bits per byte of any text.
#pragma once

#include "app/command.h"
#include "comm/communicator.h"
#include "stages/requests.h"

namespace fairway::app {

struct ScoreTextFlags {
  std::string text;  // a file, or - for standard input; empty: shards are scored
  bool surprisal = false;
  std::string page;  // file of the coloured page
};

int run_score_text(const CommonFlags& common, const ScoreRequest& request, const ScoreTextFlags& flags, Communicator& comm);

}  // namespace fairway::app
