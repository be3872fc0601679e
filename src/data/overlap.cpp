#include "data/overlap.h"

#include <fmt/core.h>

#include "base/error.h"
#include "base/identity.h"
#include "data/folder_tokenizer.h"
#include "data/validation.h"

namespace fairway::data {

Overlap find_overlap(const std::filesystem::path& train, const std::filesystem::path& validation) {
  if (list_train(train).empty()) throw InputError(train.string() + ": no training shards (fineweb_train_*.bin)");
  if (list_validation(validation).empty()) throw InputError(validation.string() + ": no validation shards (fineweb_val_*.bin)");
  const std::string a = open_tokenizer(train).identity, b = open_tokenizer(validation).identity;
  Overlap out;
  for (const IdentityDifference& one : differences(tokenizer_identity({a}, train.string()), tokenizer_identity({b}, "")))
    throw InputError(fmt::format("{} and {}: their tokenizers differ ({} and {}), and documents are compared by their tokens",
                                 train.string(), validation.string(), one.have, one.other));
  std::error_code error;
  if ((a.empty() || b.empty()) && !std::filesystem::equivalent(train, validation, error))
    out.notes.push_back(fmt::format("{}: no tokenizer.model, so whether both folders have one tokenizer could not be checked",
                                    (a.empty() ? train : validation).string()));
  out.shared = find_shared(train, Validation::open(validation).read_all());
  return out;
}

}  // namespace fairway::data
