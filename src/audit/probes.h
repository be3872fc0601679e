// Where and how the audit changes a stream (scoring spec §3.2): cuts at the edges of windows, chunks, documents and ranks, then
// at random places; five ways to change everything from a cut on, and single targets replaced by tokens of other classes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "score/evaluator.h"

namespace fairway {

struct Cut {
  int64_t target;    // the first token that is changed
  std::string what;  // which edge
};

// So many random cuts ask for every edge and every change; fewer for one of each.
inline constexpr int64_t kThorough = 20;

// Sorted, each target once, all inside 1 … T.
std::vector<Cut> cut_positions(std::span<const uint16_t> stream, const ScoredModel& model, const ScoreSettings& settings,
                               int64_t random, uint64_t seed);

// The part of a text, so many tokens long and beginning with a document, that holds most documents; none: `documents` is 0.
struct DocumentPart {
  int64_t begin = 0, documents = 0;
};
DocumentPart most_documents(std::span<const uint16_t> text, int64_t length, int64_t bos);
inline constexpr int64_t kLeastDocuments = 4;  // on which phases, and an order of documents, can be told

enum class Mutation : uint8_t { random, flip, constant, all_bos, deleted };
inline constexpr int64_t kMutations = 5;
std::string_view name_of_mutation(Mutation mutation);

std::vector<uint16_t> mutate(std::span<const uint16_t> stream, int64_t cut, Mutation mutation, const ModelRecipe& model,
                             uint64_t seed);

// Tokens of other classes than, and one of the same class as, the one at `target`: a document start, one with a leading space,
// a byte, a like one. Classes that the tokenizer lacks are left out.
std::vector<uint16_t> replacements(std::span<const uint16_t> stream, int64_t target, const ScoredModel& model, uint64_t seed);

}  // namespace fairway
