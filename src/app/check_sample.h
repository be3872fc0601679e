// Does an artifact give the score that its receipt tells? Windows from the beginning of the validation text are scored again
// and their records compared with the receipt's beginnings; T8 of the audit holds a beginning to be the same alone and in the
// whole.
#pragma once

#include "app/command.h"

namespace fairway::app {

struct SampleCheck {
  std::vector<std::string> problems;  // sentences, each beginning with a file
  int64_t targets = 0;                // scored again, of all seeds
};
// Of every model_seedN.fwy in a submission's folder, on the validation shards in `data`. As many windows as take about
// `seconds` each. With the backend of the receipt every bit must be the same, else the loss to a hundredth of a nat.
SampleCheck check_samples(const std::filesystem::path& folder, const std::string& data, double seconds,
                          const CommonFlags& common);

}  // namespace fairway::app
