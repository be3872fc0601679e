// Small inputs for the program: shards of random tokens, English-like text, a tokenizer, and a run of the smoke recipe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "app/program.h"
#include "data/scratch_folder.h"

using Path = std::filesystem::path;

inline constexpr int kSmokeVocab = 512;

std::vector<uint16_t> random_tokens(size_t count, int vocab, uint64_t seed);  // with a document start (1) now and then
void make_train_shards(const Path& folder, int vocab = kSmokeVocab, size_t tokens = 6000);
std::string english_like(size_t bytes);
// A file beside `words` with the same text behind a word of its own: validation text that is no document of the training text.
std::string held_out_of(const Path& words);
// Train shards, a validation shard and a tokenizer.model of the smoke recipe's vocabulary.
void make_data(const Path& folder);

std::string contents(const Path& path);  // "" when it is absent
std::vector<nlohmann::json> json_lines(const Path& path);

// `fairway train smoke` with further arguments.
Args train_smoke(const Path& data, const Path& out, const Args& more = {});

// The files of a finished run that must be the same bytes whenever the same run is made again.
struct RunBytes {
  std::string metrics, checkpoint, averaged;
  std::string log;  // without its times
};
RunBytes bytes_of_run(const Path& run);
void expect_same(const RunBytes& have, const RunBytes& want, const std::string& what);
