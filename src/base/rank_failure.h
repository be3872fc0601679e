// Another process of this run has failed: its words are told as they are, with its exit status.
#pragma once

#include <stdexcept>
#include <string>

namespace fairway {

class RankFailure : public std::runtime_error {
 public:
  RankFailure(const std::string& sentence, int status) : std::runtime_error(sentence), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

}  // namespace fairway
