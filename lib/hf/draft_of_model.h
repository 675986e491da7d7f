// The way on for a model whose type no family has: which family its tensors are nearest to, and the first map
// file.
//
//   Phi-3-mini/  ->  base llama, which explains 195 of 259 tensors; a map file with 4 rows to decide
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Error;
class Store;
struct OpenOptions;

// A map file for the model in a folder. Its text is ready to be written.
struct ModelDraft {
  std::string text;
  std::string base;      // the name of the nearest family
  i64 tensors = 0;       // of the model
  i64 explained = 0;     // of them by that family
  i64 to_decide = 0;     // rows of the map
  std::string not_read;  // why the base's reader does not take the config; "": it does
  // Entries that a map does not compare: how the model computes by its config, "logit_scale 0.0625", and how
  // the base would have the run compute.
  std::vector<std::string> computation{};
};

// Throws kNotFound for a folder without config.json or without headers of weights, kQuantized, and
// kUnknownModel for a model of which no family explains a tensor.
ModelDraft draft_of_model(const std::string& path, const OpenOptions& opening);

// The family that is nearest to a model whose type no family has.
struct Nearest {
  std::string family;      // "" if none explains any tensor
  i64 explained = 0;       // of the tensors
  i64 tensors = 0;         // of the model
  bool has_shapes = true;  // so that a map can be drafted
};
// Nothing for a folder whose config or tensors cannot be read.
std::optional<Nearest> nearest_family(const std::string& path, const OpenOptions& opening);
// "by its tensors the nearest family is llama, which explains 11 of 15 tensors"
std::string nearest_text(const Nearest& nearest);
// The fact's name, and its value for a type that no family has begins so.
inline constexpr std::string_view kFamilyFact = "family", kUnknownFamily = "unknown";
// "mckpt mappings draft phi3 map.json   writes a first map file, for `map_file`"
std::string draft_command(const std::string& path);

// Adds a fact to the store of a Hugging Face folder whose type no family has: "family  unknown; by its tensors ...". A
// folder with a map file of its own has that as a fact. Throws nothing.
void add_family_fact(Store& store);

// Adds to an error kUnknownModel which family is nearest by the tensors of the folder, and how a map is
// drafted. Throws nothing: tensors that cannot be read are left out.
void add_way_on(Error& error, const std::string& path, const OpenOptions& opening);

}  // namespace mckpt::impl
