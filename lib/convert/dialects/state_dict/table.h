// The table of state dicts: the rows of a fused parameter <-> the rows of its parts. A state dict has the
// parameter whole, fsdp_dtensor its parts under keys of their own. Each of the tensor-parallel ranks that
// wrote the whole parameter has its rows of every part, one rank after the other:
//
//   stored by 2 ranks    [gate 0-3 | up 0-3 | gate 4-7 | up 4-7]
//   weight_w             rows 0-3 and 8-11          weight_v   rows 4-7 and 12-15
//
// One view takes parameters apart along the table (state_dict_pieces.h), another puts them together
// (whole_parameters.h).
#pragma once

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

// A part of a parameter; rows are counted as one rank alone has them.
struct FusedPart {
  std::string key;
  i32 parameter = 0;
  i64 first_row = 0, rows = 0;
  i64 number = 0, count = 0;  // which of how many parts

  bool divides(i64 cells) const { return cells > 0 && rows % cells == 0 && first_row % cells == 0; }
};

class StateDictTable {
 public:
  // Rows that the whole parameter and a part of it share.
  struct Rows {
    i64 in_whole, in_part, count;
  };

  // Null: no model is known, and the table is empty.
  StateDictTable(const ModelMap* map, const RunSetup& setup);

  const std::vector<ModelParameter>& parameters() const { return parameters_; }
  const ModelParameter& parameter(const FusedPart& part) const { return parameters_[part.parameter]; }
  // The parts that fsdp_dtensor has in place of the parameter; none: it has it whole, or does not know it.
  std::span<const FusedPart> apart(std::string_view parameter) const;
  // The part of that key, of any parameter that can be stored in parts; null: there is none.
  const FusedPart* find(std::string_view key) const;
  // All parts of the part's parameter.
  std::span<const FusedPart> parts_with(const FusedPart& part) const {
    return std::span(&part - part.number, static_cast<std::size_t>(part.count));
  }
  // pre: the part divides by the cells that wrote the parameter.
  std::vector<Rows> rows(const FusedPart& part, i64 cells) const;

 private:
  std::vector<ModelParameter> parameters_;
  std::vector<FusedPart> parts_;                    // parameter by parameter
  NameMap<std::string_view, i64> first_part_;  // of a parameter
  NameMap<std::string_view, i64> part_;        // by key
};

// How many cells wrote a parameter one after the other, each its own rows; 1 for a parameter without such
// rows.
i64 cells_of(const ModelParameter& p, const KeyTable::Cells& cells);

}  // namespace mckpt::impl
