// Receipts as a forger makes them, and a run that was scored and seems audited.
#pragma once

#include <cstring>
#include <functional>

#include "app/world.h"
#include "base/sha256.h"

// As anybody can: the receipt changed, and its checksum made anew.
inline void forge(const Path& path, const std::function<void(nlohmann::ordered_json&)>& change) {
  nlohmann::ordered_json receipt = nlohmann::ordered_json::parse(contents(path));
  change(receipt);
  receipt.erase("sha256");
  receipt["sha256"] = fairway::sha256_hex(receipt.dump());
  put_file(path, receipt.dump(2) + "\n");
}

// An audit takes seconds, and is not what these tests look at.
inline void seem_audited(nlohmann::ordered_json& receipt) {
  for (int test = 1; test <= 12; ++test)
    receipt["audit"]["tests"].push_back({{"id", "T" + std::to_string(test)}, {"held", true}, {"detail", ""}});
}

// Every target's nats in score.records, halved; gives the new bytes.
inline std::string halve_records(const Path& path) {
  std::string records = contents(path);
  uint64_t targets = 0;
  std::memcpy(&targets, records.data() + 8, 8);
  for (size_t at = 16; at < 16 + 4 * targets; at += 4) {
    float nll = 0;
    std::memcpy(&nll, records.data() + at, 4);
    nll /= 2;
    std::memcpy(records.data() + at, &nll, 4);
  }
  put_file(path, records);
  return records;
}
