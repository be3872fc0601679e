// What torch.save wrote: a zip with a pickle, and one entry for each storage. Tensors are views into storages, which they may
// share (offset and strides in elements).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "interchange/pickle.h"
#include "interchange/stored_tensor.h"
#include "interchange/zip_archive.h"

namespace fairway::interchange {

using StoredTensors = std::map<std::string, StoredTensor>;

class TorchFile {
 public:
  // `name` begins every InputError.
  TorchFile(std::shared_ptr<const std::string> bytes, const std::string& name);

  const Pickle& pickle() const { return pickle_; }
  bool is_tensor(PickleRef ref) const;  // or a parameter, which is a tensor in a wrapper
  StoredTensor tensor(PickleRef ref, const std::string& name);
  StoredTensors tensors(PickleRef dict, const std::string& what);  // of a dict in which there is nothing else

 private:
  struct Storage {
    ElementType type = ElementType::f32;
    std::string_view bytes;
  };
  Storage storage(PickleRef persistent, const std::string& of_tensor);
  std::vector<PickleRef> arguments(PickleRef call, size_t least, size_t most, const std::string& of_tensor) const;
  Extents extents(PickleRef tuple, const std::string& what) const;

  std::shared_ptr<const std::string> bytes_;
  ZipArchive archive_;
  std::string folder_;  // of the entries, with its slash
  Pickle pickle_;
  std::map<std::string, std::string_view> storages_;  // entries whose sum was checked
};

}  // namespace fairway::interchange
