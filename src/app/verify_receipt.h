// Is a receipt true? Its files are looked for beside it first, so that a copied run folder is checked against itself.
#pragma once

#include "app/receipt_file.h"

namespace fairway::app {

struct VerifyFlags {
  std::filesystem::path receipt;
  std::string from, data, tokenizer;  // where they lie, instead of where the receipt says; each may be empty
  std::string signers;                // the receipt must be signed by one of this file; may be empty
  bool again = false;                 // score again and compare every record
};

struct Verified {
  std::vector<std::string> wrong;  // what is not as the receipt says: sentences, none when all holds
  std::vector<std::string> notes;  // how it holds, where there is something to say
};
Verified verify_receipt(const VerifyFlags& flags, const CommonFlags& common);

}  // namespace fairway::app
