// The group containers of the published records: matrices of int8, each transposed and its rows sorted, in a few streams, and
// the other tensors as torch.save wrote them. PGRP-1 (PR #1855) compresses matrices with lrzip, PGRP-2 (PR #2135) with Brotli
// or lrzip.
#pragma once

#include <memory>
#include <optional>

#include "interchange/lrzip.h"
#include "interchange/torch_file.h"

namespace fairway::interchange {

bool is_group_container(std::string_view bytes);

// Tensors under the names of artifacts ("….weight.q") beside the file that holds the others and the kinds.
struct GroupContainer {
  int version = 1;
  StoredTensors matrices;
  std::shared_ptr<const std::string> rest;  // a zip of torch.save
};
GroupContainer read_group_container(std::string_view bytes, const std::string& name, const Unlrzip& unlrzip);

}  // namespace fairway::interchange
