// Mutations that know nothing of a format, and LLVMFuzzerMutate for targets' own mutators outside of libFuzzer.
#pragma once

#include <string>

#include "base/rng.h"

inline constexpr size_t kMostInputBytes = 1 << 20;

uint32_t odd_number(fairway::Rng& rng);  // limits of integer types, or any
void mutate(std::string& bytes, const std::string& other, fairway::Rng& rng);

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);
void seed_mutations(uint64_t seed, uint64_t stream);  // of LLVMFuzzerMutate on this thread
