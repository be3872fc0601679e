// "Did you mean": the candidate nearest to a mistyped name.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace fairway {

// Number of inserted, deleted or replaced characters that turn one word into the other.
int edit_distance(std::string_view a, std::string_view b);

// The candidate with the smallest distance, the first of equals; empty when there are none.
std::string nearest_word(std::string_view word, std::span<const std::string> candidates);

}  // namespace fairway
