// Files made from samples with something changed: entries of a zip, a pickle's bytes, tensors of a state dict, kinds of an
// artifact, words of a container.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "interchange/stored_tensor.h"
#include "interchange/torch_file.h"

namespace fairway::interchange {

// A zip's entries without their folder, and back under another one.
struct ZipParts {
  explicit ZipParts(const std::string& file);
  std::string file(const std::string& folder = "made") const;
  std::string& pickle() { return entries["data.pkl"]; }
  std::map<std::string, std::string> entries;
};

// The first occurrence after `behind` is replaced; fails the test when there is none.
std::string replaced(std::string bytes, std::string_view behind, std::string_view from, std::string_view to);

// A zip whose pickle is this and nothing else.
std::string with_pickle(const std::string& pickle);

// A state dict, or an artifact's {'w': …, 'm': …}.
struct Dict {
  explicit Dict(const std::string& torch_file);
  std::string file() const;  // dense, uncompressed

  std::map<std::string, StoredTensor> tensors;
  std::map<std::string, std::string> kinds;  // empty: a state dict
};
std::vector<float> values_of(const StoredTensor& tensor);
StoredTensor tensor_of(Extents shape, const std::vector<float>& values);  // f32
StoredTensor cut_rows(const StoredTensor& tensor, int64_t rows);          // the first rows alone
StoredTensor turned(const StoredTensor& tensor);                          // last two axes swapped, dense
StoredTensor changed_value(const StoredTensor& tensor, size_t at, float value);

std::string brotli(std::string_view bytes);
std::string xz(std::string_view bytes);
std::string zlib(std::string_view bytes);
std::string shuffled(std::string_view bytes, char stride = 2);  // with its mark

// The first version of the group container around an artifact's tensors; `coded` stands for lrzip.
std::string first_group_container(const Dict& artifact, const std::function<std::string(std::string_view)>& coded);

}  // namespace fairway::interchange
