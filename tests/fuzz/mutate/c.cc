// The mutators for programs in other languages: mckpt_mutate("pickle", ...).
#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include "tests/fuzz/mutate/mutator.h"

namespace {

using namespace mckpt::impl;

const std::map<std::string, mutate::Mutator>& mutators() {
  static const std::map<std::string, mutate::Mutator> kAll = {{"json", mutate::json},
                                                              {"pickle", mutate::pickle},
                                                              {"pickles", mutate::pickles},
                                                              {"zip", mutate::zip},
                                                              {"safetensors", mutate::safetensors}};
  return kAll;
}

}  // namespace

// Stores a mutated input at `to`, and returns its size; -1: it needs more than `room`. One in four is mutated
// as bytes, and so is every input that is not of the kind. `other` may be null. The same arguments give the
// same bytes.
extern "C" __attribute__((visibility("default"))) i64 mckpt_mutate(const char* kind, const char* input,
                                                                   i64 size, const char* other,
                                                                   i64 other_size, u64 seed, char* to,
                                                                   i64 room) {
  mutate::Choice choice(seed);
  std::string text(input, static_cast<std::size_t>(size)),
      from = other ? std::string(other, static_cast<std::size_t>(other_size)) : "";
  auto mutator = mutators().find(kind);
  for (i64 n = choice.one_in(2) ? 1 : 1 + choice.below(4); n > 0; n--) {
    const std::string* with = other && choice.one_in(4) ? &from : nullptr;
    bool plain = mutator == mutators().end() || choice.one_in(4);
    if (plain || !mutator->second(text, with, choice)) text = mutate::bytes(std::move(text), with, choice);
  }
  if (std::ssize(text) > room) return -1;
  std::copy(text.begin(), text.end(), to);
  return std::ssize(text);
}
