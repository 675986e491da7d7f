// Parameters that fsdp_dtensor has whole and torch_dist in parts (those of Mamba's mixers) are in the table
// too: they are put together, and never taken apart.
#include "convert/dialects/state_dict/table.h"

#include "core/fsdp/grid.h"
#include "mappings/model/expand.h"
#include "mappings/rule.h"

namespace mckpt::impl {

StateDictTable::StateDictTable(const ModelMap* map, const RunSetup& setup) {
  if (!map) return;
  parameters_ = map->parameters(Grid{}, Cell{}, setup);
  for (i32 i = 0; i < static_cast<i32>(parameters_.size()); i++) {
    const ModelParameter& p = parameters_[i];
    const KeySplit split = p.split != KeySplit::kNone ? p.split : rule_named(p.row->rule).parts;
    if (split == KeySplit::kNone) continue;
    const std::vector<Piece> pieces = pieces_of(split, map->model(), {p.shape()}, Part{});
    for (i64 n = 0; n < std::ssize(pieces); n++)
      parts_.push_back({piece_key(split, p.global_name, pieces[n]), i, pieces[n].first_row, pieces[n].rows, n,
                        std::ssize(pieces)});
  }
  for (i64 n = 0; n < std::ssize(parts_); n++) {
    part_.emplace(parts_[n].key, n);
    first_part_.emplace(parameter(parts_[n]).global_name, n);
  }
}

std::span<const FusedPart> StateDictTable::apart(std::string_view parameter) const {
  const auto first = first_part_.find(parameter);
  if (first == first_part_.end()) return {};
  const FusedPart& part = parts_[first->second];
  if (parameters_[part.parameter].split == KeySplit::kNone) return {};
  return parts_with(part);
}

const FusedPart* StateDictTable::find(std::string_view key) const {
  const auto at = part_.find(key);
  return at == part_.end() ? nullptr : &parts_[at->second];
}

std::vector<StateDictTable::Rows> StateDictTable::rows(const FusedPart& part, i64 cells) const {
  const i64 each = part.rows / cells, whole = parameter(part).shape()[0] / cells;
  std::vector<Rows> out;
  for (i64 cell = 0; cell < cells; cell++)
    out.push_back({cell * whole + part.first_row / cells, cell * each, each});
  return out;
}

i64 cells_of(const ModelParameter& p, const KeyTable::Cells& cells) {
  if (p.holding->partition_dim != 0) return 1;
  return p.expert() ? cells.etp : cells.tp;
}

}  // namespace mckpt::impl
