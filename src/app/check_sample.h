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
struct SampleRequest {
  std::filesystem::path folder;  // of the submission
  std::string data;              // folder with validation shards
  std::string tokenizer;         // of the shards; empty: tokenizer.model beside them
  double seconds = 20;           // for each seed
};
// Of every model_seedN.fwy in a submission's folder. As many windows as take about `seconds` each. With the backend of the
// receipt every bit must be the same, else the loss to a hundredth of a nat.
SampleCheck check_samples(const SampleRequest& request, const CommonFlags& common);

}  // namespace fairway::app
