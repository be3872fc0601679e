// A golden file's metadata, key by key. The files of the `best` family say everything themselves. Those before them say only
// their sizes; what they were made with is declared in metadata.cpp. A key that nobody asked for is refused: the file would
// have been made with something that this program leaves out.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "model/safetensors.h"

namespace fairway::golden {

class Metadata {
 public:
  explicit Metadata(const Safetensors& file);

  bool has(const std::string& key) const { return values_.contains(key); }
  // InputError, naming file, key and value, when a key is absent or its value is not what it must be.
  const std::string& text(const std::string& key);
  double number(const std::string& key);
  double number(const std::string& key, double least, double most);
  int64_t whole(const std::string& key, int64_t least, int64_t most);
  bool flag(const std::string& key) { return whole(key, 0, 1) == 1; }
  std::vector<int64_t> list(const std::string& key);  // "3,4"
  void require(const std::string& key, double only);  // what this program has but one value for
  void refuse_unread() const;

 private:
  [[noreturn]] void refuse(const std::string& key, const std::string& wanted) const;

  std::string name_;
  std::map<std::string, std::string> values_;
  std::set<std::string> stored_;  // keys of the file itself that were not asked for yet
};

}  // namespace fairway::golden
