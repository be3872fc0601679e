#include "analysis/receipt_numbers.h"

#include <fmt/core.h>

namespace fairway {

using nlohmann::ordered_json;

std::vector<std::string> wrong_score(const ordered_json& score, const BlockSums& blocks, int64_t targets) {
  const Score sum = measure(blocks, targets);
  std::vector<std::string> wrong;
  const auto expect = [&](const char* key, const ordered_json& value) {
    if (const ordered_json told = score.value(key, ordered_json()); told != value)
      wrong.push_back(fmt::format("its {} is {}, but its records give {}", key, told.dump(), value.dump()));
  };
  expect("tokens", sum.tokens);
  expect("bytes", sum.bytes);
  expect("val_loss", sum.loss());
  expect("val_bpb", sum.bits_per_byte());
  return wrong;
}

BlockSums blocks_of(const ordered_json& receipt) {
  const ordered_json& records = receipt.at("records");
  return {records.at("nats").get<std::vector<double>>(), records.at("bytes").get<std::vector<int64_t>>()};
}

std::vector<std::string> wrong_numbers(const ordered_json& receipt) {
  const ordered_json &records = receipt.at("records"), &score = receipt.at("score"), &settings = receipt.at("settings");
  const auto targets = records.at("targets").get<int64_t>();
  const BlockSums blocks = blocks_of(receipt);
  const auto expected = static_cast<size_t>(targets > 0 ? (targets + kScoreBlock - 1) / kScoreBlock : 0);
  if (records.at("block") != kScoreBlock || blocks.nats.size() != expected || blocks.bytes.size() != expected)
    return {fmt::format("its records are not the sums of {} targets in blocks of {}", targets, kScoreBlock)};
  std::vector<std::string> wrong = wrong_score(score, blocks, targets);
  for (const char* key : {"mode", "context"}) {
    if (score.at(key) != settings.at(key))
      wrong.push_back(
          fmt::format("its {} is {}, but it was scored with {}", key, score.at(key).dump(), settings.at(key).dump()));
  }
  if (score.at("legal") != receipt.at("legal")) wrong.emplace_back("it contradicts itself on whether it is legal");
  return wrong;
}

}  // namespace fairway
