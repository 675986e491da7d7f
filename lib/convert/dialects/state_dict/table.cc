// Parameters that fsdp_dtensor has whole and torch_dist in parts (the parameters of Mamba's mixers) are in
// the table too: they are put together, and never taken apart.
#include "convert/dialects/state_dict/table.h"

#include "core/fsdp/grid.h"
#include "mappings/model/expand.h"
#include "mappings/rule.h"

namespace mckpt::impl {

StateDictTable::StateDictTable(const ModelMap* map, const RunSetup& setup) {
  if (!map) return;
  parts_.emplace(*map, setup, [](const ModelParameter& p) {
    return p.split != KeySplit::kNone ? p.split : rule_named(p.row->rule).parts;
  });
  for (i32 i = 0; i < static_cast<i32>(parameters().size()); i++)
    if (parameters()[i].split != KeySplit::kNone) of_name_.emplace(parameters()[i].global_name, i);
}

std::span<const ModelParameter> StateDictTable::parameters() const {
  return parts_ ? std::span(parts_->parameters()) : std::span<const ModelParameter>();
}

std::span<const CheckpointKey> StateDictTable::apart(std::string_view parameter) const {
  const auto at = of_name_.find(parameter);
  return at == of_name_.end() ? std::span<const CheckpointKey>() : parts_->keys_of(at->second);
}

const CheckpointKey* StateDictTable::find(const std::string& key) const {
  const i32 at = parts_ ? parts_->find(key) : -1;
  return at < 0 || parts_->keys_of((*parts_)[at].parameter).size() == 1 ? nullptr : &(*parts_)[at];
}

bool StateDictTable::divides(const CheckpointKey& part, i64 cells) {
  return part.shape[0] % cells == 0 && part.first_row % cells == 0;
}

std::vector<StateDictTable::Rows> StateDictTable::rows(const CheckpointKey& part, i64 cells) const {
  const i64 each = part.shape[0] / cells, whole = parameter(part).shape()[0] / cells;
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
