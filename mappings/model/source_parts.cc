// The parts of tables of n-grams, which are the only tensors that files cut.
#include "mappings/model/source_parts.h"

#include <algorithm>

#include "core/base/error.h"
#include "mappings/config.h"
#include "mappings/shape_text.h"

namespace mckpt::impl {

i64 parts_of(const Source& source, const ModelConfig& model) {
  return source.in_parts() ? model.ngrams.parts : 1;
}

Shape shape_of_part(const Source& source, const ModelConfig& model, const TowerConfig& tower, i64 part) {
  const Shape shape = shape_of(source.shape, model, tower);
  if (!source.in_parts()) return shape;
  const i64 left = tower.ngram_rows - checked_mul(part, shape[0], "the rows of a table");
  if (left <= 0)
    throw Error(Code::kModelNumbers, cat("part ", part, " of a table of n-grams has no rows"))
        .expected(cat("more than ", part * shape[0], " rows in ", model.ngrams.parts, " parts"))
        .found(tower.ngram_rows);
  return shape.with_dim(0, std::min(shape[0], left));
}

}  // namespace mckpt::impl
