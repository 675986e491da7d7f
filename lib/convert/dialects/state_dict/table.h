// The table of state dicts: the rows of a fused parameter <-> the rows of its parts. A state dict has the
// parameter whole, fsdp_dtensor its parts under keys of their own. Each of the tensor-parallel ranks that
// wrote the whole parameter has its rows of every part, one rank after the other:
//
//   stored by 2 ranks    [gate 0-3 | up 0-3 | gate 4-7 | up 4-7]
//   weight_w             rows 0-3 and 8-11          weight_v   rows 4-7 and 12-15
//
// One view takes parameters apart along the table, another puts them together.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convert/keys/key_table.h"
#include "core/base/int.h"
#include "core/base/name_hash.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {

class ModelMap;

class StateDictTable {
 public:
  // Rows that the whole parameter and a part of it share.
  struct Rows {
    i64 in_whole, in_part, count;
  };

  // Null: no model is known, and the table is empty.
  StateDictTable(const ModelMap* map, const RunSetup& setup);

  // The parameters as one rank alone has them.
  std::span<const ModelParameter> parameters() const;
  const ModelParameter& parameter(const CheckpointKey& part) const { return parts_->parameter(part); }
  // The parts that fsdp_dtensor has in place of the parameter; none: it has it whole, or does not know it.
  std::span<const CheckpointKey> apart(std::string_view parameter) const;
  // The part of that key, of any parameter that can be stored in parts; null: there is none.
  const CheckpointKey* find(const std::string& key) const;
  // All parts of the part's parameter, in the order of its rows.
  std::span<const CheckpointKey> parts_with(const CheckpointKey& part) const {
    return parts_->keys_of(part.parameter);
  }
  // Whether so many cells can have written the part, each its share, and then the rows of each.
  static bool divides(const CheckpointKey& part, i64 cells);
  std::vector<Rows> rows(const CheckpointKey& part, i64 cells) const;

 private:
  std::optional<KeyTable> parts_;           // every fused parameter in parts
  NameMap<std::string_view, i32> of_name_;  // parameters that fsdp_dtensor has in parts
};

// How many cells wrote a parameter one after the other, each its own rows; 1 for a parameter without such
// rows.
i64 cells_of(const ModelParameter& p, const KeyTable::Cells& cells);

}  // namespace mckpt::impl
