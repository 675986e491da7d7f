// Makes a table for a model that has none: one section, one row for each parameter, rule `replicate`, the
// shape written as numbers ("32 16").
#include "mappings/model/plain_family.h"

#include "core/base/error.h"
#include "core/items/shape.h"

#include <algorithm>

namespace mckpt::impl {

PlainFamily::PlainFamily(std::span<const Parameter> parameters) {
  for (const Parameter& p : parameters) {
    bool empty = p.dims.empty() || std::ranges::find(p.dims, 0) != p.dims.end();
    if (empty || p.name.find_first_of("{}") != p.name.npos)
      throw Error(Code::kNotHeld, "this parameter cannot be sharded")
          .tensor(p.name)
          .expected("at least one dimension and one item, and a name without braces")
          .found(dims_to_string(p.dims));
    std::string& shape = texts_.emplace_back();
    for (i64 d : p.dims) shape += cat(shape.empty() ? "" : " ", d);
    Row row;
    row.megatron = texts_.emplace_back(p.name);
    row.rule = "replicate";
    row.sources[0] = {row.megatron, shape};
    rows_.push_back(row);
  }
  section_.rows = rows_;
  family_.name = kPlainFamily;
  family_.summary = "any model";
  family_.sections = {&section_, 1};
}

}  // namespace mckpt::impl
