// The way on for a model whose type no family has: which family its tensors are nearest to, and the first map file.
//
//   Phi-3-mini/  ->  base llama, which explains 195 of 259 tensors; a map file with 2 rows to decide
#pragma once

#include <string>

#include "core/base/int.h"

namespace mckpt::impl {

class Error;
struct OpenOptions;

// A map file for the model in a folder. Its text is ready to be written.
struct ModelDraft {
  std::string text;
  std::string base;     // the family's name, or "none"
  std::string nearest;  // of all families
  i64 tensors = 0;      // of the model
  i64 explained = 0;    // of them by the nearest family
  i64 rows = 0, to_decide = 0, removed = 0;
};

// Throws kNotFound for a folder without config.json or without headers of weights, kBadConfig for a config without
// numbers, kQuantized.
ModelDraft draft_of_model(const std::string& path, const OpenOptions& opening);

// Adds to an error kUnknownModel which family is nearest by the tensors of the folder, and how a map is drafted.
// Throws nothing: tensors that cannot be read are left out.
void add_way_on(Error& error, const std::string& path, const OpenOptions& opening);

}  // namespace mckpt::impl
