// The numbers of a receipt, computed again from what it keeps of the score.
#pragma once

#include <nlohmann/json.hpp>

#include "score/metric.h"

namespace fairway {

// Tokens, bytes, nats per token and bits per byte that these sums give, against `score`; a sentence for each that differs.
std::vector<std::string> wrong_score(const nlohmann::ordered_json& score, const BlockSums& blocks, int64_t targets);

BlockSums blocks_of(const nlohmann::ordered_json& receipt);
// What the receipt says of its score, against its own sums.
std::vector<std::string> wrong_numbers(const nlohmann::ordered_json& receipt);

}  // namespace fairway
