// Which family a model belongs to.
#pragma once

#include <string>
#include <vector>

#include "mappings/family.h"

namespace mckpt {

const std::vector<const Family*>& all_families();

// By the model_type of config.json. Throws kUnknownModel that names `architecture` and the nearest family.
const Family& family_of_model(std::string_view model_type, std::string_view architecture);
// By the name of a family. Throws kUsage with the nearest one.
const Family& family_named(std::string_view name);

// The lists of rows of a section: its own, or those of a layer by kind, as LayerRows has them; empty ones are
// left out.
struct RowList {
  std::string_view kind;  // "" or the name of the member of LayerRows
  std::span<const Row> rows;
};
std::vector<RowList> row_lists(const Section& section);

// Throws kBadMap for the first fault of a family's tables: a rule that does not exist, sources that are more
// or fewer than its roles, placeholders that the scope does not fill or that do not stand on both sides, a
// shape that does not read, a name twice.
void check_family(const Family& family);

}  // namespace mckpt
