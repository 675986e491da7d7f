// Gives a fuzz target a mutator beside libFuzzer's own: MCKPT_MUTATED_AS(mutate::json) ends its file.
//
//   half of the inputs     LLVMFuzzerMutate: bytes, words of the dictionary, constants of comparisons
//   the other half         the mutator; bytes again where it cannot take the input apart
//
// MCKPT_FUZZ_BYTES_ONLY in the environment leaves the mutator out, so that both can be compared.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tests/fuzz/mutate/mutator.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace mckpt::impl::mutate {

inline bool bytes_only() {
  static const bool kOnly = std::getenv("MCKPT_FUZZ_BYTES_ONLY") != nullptr;
  return kOnly;
}

inline std::size_t mixed(const Mutator& mutator, u8* data, std::size_t size, std::size_t max_size,
                         unsigned seed) {
  Choice choice(seed);
  if (!bytes_only() && choice.one_in(2)) {
    std::string input(reinterpret_cast<const char*>(data), size);
    if (mutator(input, nullptr, choice) && input.size() <= max_size) {
      std::memcpy(data, input.data(), input.size());
      return input.size();
    }
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

// 0 where nothing came of it: libFuzzer then crosses nothing.
inline std::size_t crossed(const Mutator& mutator, const u8* data, std::size_t size, const u8* other,
                           std::size_t other_size, u8* out, std::size_t max_size, unsigned seed) {
  Choice choice(seed);
  std::string input(reinterpret_cast<const char*>(data), size),
      from(reinterpret_cast<const char*>(other), other_size);
  if (bytes_only() || !mutator(input, &from, choice) || input.size() > max_size) return 0;
  std::memcpy(out, input.data(), input.size());
  return input.size();
}

}  // namespace mckpt::impl::mutate

#define MCKPT_MUTATED_AS(...) \
  extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, \
                                                 unsigned seed) { \
    return mckpt::impl::mutate::mixed(__VA_ARGS__, data, size, max_size, seed); \
  } \
  extern "C" std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* data, std::size_t size, \
                                                   const std::uint8_t* other, std::size_t other_size, \
                                                   std::uint8_t* out, std::size_t max_size, unsigned seed) { \
    return mckpt::impl::mutate::crossed(__VA_ARGS__, data, size, other, other_size, out, max_size, seed); \
  }
