// Whether a file's weights are those of a recipe's model, tensor by tensor, and the weights put into a store. Nothing is
// dropped, reshaped or transposed: what does not fit is listed.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "interchange/published_names.h"
#include "interchange/weight_set.h"
#include "model/param_store.h"

namespace fairway::interchange {

struct Misfit {
  std::string name;
  std::optional<Extents> expected, found;  // absent: not in the model, not in the file
  std::string remark{};                    // for people; may be empty
  std::string text() const;                // one piece of a sentence
};

struct Fit {
  std::vector<Misfit> missing;       // not in the file, or of another shape
  std::vector<Misfit> unexpected;    // in no place of the model
  std::vector<Misfit> transposed;    // the last two axes the other way round
  std::vector<std::string> ignored;  // constants and tables that are no parameters
  std::vector<std::string> filled;   // projections that the file does without: identities
  size_t tensors = 0;                // taken from the file

  bool whole() const { return missing.empty() && unexpected.empty() && transposed.empty(); }
  size_t misfits() const { return missing.size() + unexpected.size() + transposed.size(); }
  std::string sentence() const;  // all lists in one line, each cut after a few names with the number of the others
};

Fit fit_of(const WeightSet& set, const ModelRecipe& model);

struct Loaded {
  std::shared_ptr<ParamStore> params;
  std::vector<std::string> not_finite;  // "kv_bank: value 7 is nan, 3 in all"
  std::vector<std::string> rounded;     // tables
};
// Of a set that fits. `round_tables`: through bf16, as the published evaluation does it.
Loaded load(const WeightSet& set, const Recipe& recipe, bool round_tables);

// Which style names a parameter's tensors in the file; absent: none of its tensors is there.
std::optional<NameStyle> style_of(const WeightSet& set, const ParamInfo& info, int64_t layers);

}  // namespace fairway::interchange
