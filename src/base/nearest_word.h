// "Did you mean": the candidate nearest to a mistyped name.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fairway {

// Number of inserted, deleted or replaced characters that turn one word into the other.
int edit_distance(std::string_view a, std::string_view b);

// The candidate with the smallest distance, the first of equals; empty when there are none.
std::string nearest_word(std::string_view word, std::span<const std::string> candidates);

// The same for dotted keys, of which the typed one may leave out tables: "lr" is as near to every key that ends in ".lr". All
// keys of the smallest distance, in order, where a table left out counts as one character; empty when there are none.
std::vector<std::string> nearest_keys(std::string_view typed, std::span<const std::string> keys);

}  // namespace fairway
