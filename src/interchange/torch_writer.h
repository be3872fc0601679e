// What torch.load reads: a dict of dense tensors as torch.save writes it (zip, protocol 2, stored, aligned to 64 bytes), the
// same bytes for the same tensors. Texts, numbers and dicts may stand among them, as in artifacts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "interchange/stored_tensor.h"
#include "interchange/zip_archive.h"

namespace fairway::interchange {

class TorchWriter {
 public:
  explicit TorchWriter(std::string folder);  // of the entries: the file's stem

  // Between begin_dict() and end_dict() every value follows its key, a text.
  void begin_dict();
  void end_dict();
  void text(std::string_view text);
  void number(int64_t value);
  void tensor(ElementType type, const Extents& shape, std::string_view bytes);
  // A view: `storage` is the number of an earlier tensor, in the order of calls.
  void view(size_t storage, const Extents& shape, const Extents& strides, int64_t offset);

  std::string finish() &&;  // the whole file

 private:
  struct Storage {
    ElementType type;
    int64_t count;
  };
  std::string folder_, pickle_;
  std::vector<Storage> storages_;
  ZipWriter zip_;
};

}  // namespace fairway::interchange
