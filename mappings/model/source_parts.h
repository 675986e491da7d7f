// A tensor that files have in parts, cut along its rows: a source whose name has {P} is so many tensors as
// the config says, numbered from 0. All but the last have equally many rows:
//
//   "ngram_embedding.shard_{P}.weight"   308 rows of 5 columns in 3 parts: [103, 5] [103, 5] [102, 5]
#pragma once

#include <string_view>

#include "core/base/int.h"
#include "core/items/shape.h"
#include "mappings/model/walk.h"
#include "mappings/row.h"

namespace mckpt::impl {

struct ModelConfig;
struct TowerConfig;

// How many tensors the source is.
i64 parts_of(const Source& source, const ModelConfig& model);

// The shape of the tensor, or of its part of that number. Throws kModelNumbers for a part without rows.
Shape shape_of_part(const Source& source, const ModelConfig& model, const TowerConfig& tower, i64 part);

// Calls visit(source, part, site) for each tensor of the row, in the order of its sources; the site has the
// number of the part.
template <typename Visit>
void each_source(const Site& site, const Row& row, const ModelConfig& model, Visit&& visit) {
  for (std::size_t s = 0; s < row.sources.size() && !row.sources[s].name.empty(); s++) {
    if (!row.sources[s].in_parts()) {
      visit(s, i64{0}, site);
      continue;
    }
    Site numbered = site;
    for (i64 part = 0, end = parts_of(row.sources[s], model); part < end; part++) {
      numbered.numbers['P'] = part;
      visit(s, part, numbered);
    }
  }
}

}  // namespace mckpt::impl
