// The list of model families, and the look-up of a model's family:
//
//   config.json: "model_type": "qwen3_moe"   ->   the Family qwen3_moe: sections, rows, forms of experts
//
// A model type that no table has is an error; nothing is guessed from the tensors
// (mappings/map_file/draft.h compares them with the families).
#pragma once

#include <string>
#include <vector>

#include "mappings/row.h"

namespace mckpt::impl {

struct Family;
struct Section;

// All built-in families, in the order in which `mckpt mappings list` prints them.
const std::vector<const Family*>& all_families();

// The family of a model_type of config.json. Throws kUnknownModel with `architecture`.
const Family& family_of_model(std::string_view model_type, std::string_view architecture);
// The family of this name, architecture or model type. Throws kUsage with the nearest one.
const Family& family_named(std::string_view name);

// The lists of rows of a section: its own list, or the lists of LayerRows, which have a list for each kind of
// layer. Empty lists are left out.
struct RowList {
  std::string_view kind;  // "" or the name of the member of LayerRows
  std::span<const Row> rows;
};
std::vector<RowList> row_lists(const Section& section);

// Throws kBadMap for the first fault of a family's tables: a rule that does not exist, more or fewer sources
// than the rule has roles, placeholders that the scope does not fill or that are on one side only, a shape
// that cannot be read, a name that occurs twice.
void check_family(const Family& family);

}  // namespace mckpt::impl
