// Mutators that know the structure of their input: each takes an input apart, changes its parts and puts it
// together again, so that lengths, sums and offsets are right and the parser behind them is reached.
//
//   bytes -> parts -> changed parts -> bytes       false: the bytes are not of this structure
//
// Byte mutation runs beside them: on inputs of another structure, and on every second one (mixed.h).
#pragma once

#include <functional>
#include <string>

#include "tests/fuzz/mutate/choice.h"

namespace mckpt::impl::mutate {

// `other`: a second input, whose parts may come into the first; nullptr where there is none.
using Mutator = std::function<bool(std::string& input, const std::string* other, Choice& choice)>;

bool json(std::string& input, const std::string* other, Choice& choice);    // any JSON text
bool pickle(std::string& input, const std::string* other, Choice& choice);  // one pickle
// Pickles one after the other, then bytes of any kind: the older form of torch's files.
bool pickles(std::string& input, const std::string* other, Choice& choice);
// Archives; what is below a name that ends with .pkl is changed as a pickle.
bool zip(std::string& input, const std::string* other, Choice& choice);
bool safetensors(std::string& input, const std::string* other, Choice& choice);  // a whole file
// A header of safetensors alone. `data_bytes`: how many bytes of data follow, before and after.
bool safetensors_header(std::string& header, i64& data_bytes, const std::string* other, Choice& choice);

// Bytes without a structure: what libFuzzer does by itself, for programs without it.
std::string bytes(std::string input, const std::string* other, Choice& choice);

// Another text of the same kind: a letter, a digit, a part of a path changed, or something of `others` in it.
std::string text_near(const std::string& text, const std::string& other, Choice& choice);

}  // namespace mckpt::impl::mutate
