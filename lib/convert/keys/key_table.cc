// A box is turned into runs by the rule of its parameter. The rule gives the runs of one cell in local order,
// and rows of the box are a cut of that order:
//
//   whole rows                 the single rank's holding, cut at the rows
//   fused and whole (by_cell)  cell by cell: with 2 cells of 8 rows, row 11 is row 3 of cell 1
//   fewer columns              the holding of the cell that has these columns
//
// Holdings of cells other than the single rank's are computed once and shared by all parameters that are
// alike.
#include "convert/keys/key_table.h"
#include "core/base/error.h"
#include "core/fsdp/grid.h"
#include "core/items/item_run.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"
#include "mappings/rule.h"

#include <algorithm>

namespace mckpt::impl {
KeyTable::~KeyTable() = default;

const ModelParameter& KeyTable::parameter(const CheckpointKey& key) const {
  return parameters_[key.parameter];
}

i64 KeyTable::cells_of(const ModelParameter& p) const { return p.expert() ? cells_.etp : cells_.tp; }

KeyTable::KeyTable(const ModelMap& map, const RunSetup& setup, Cells cells)
    : map_(map), setup_(setup), cells_(cells), parameters_(map.parameters(Grid{}, Cell{}, setup)) {
  for (i32 p = 0; p < static_cast<i32>(parameters_.size()); p++) {
    KeySplit split = parameters_[p].split;
    split == KeySplit::kNone ? add_whole(p) : add_parts(p, split);
  }
  index_names();
}

KeyTable::KeyTable(const ModelMap& map, const RunSetup& setup, Cells cells, const Has& has,
                   const Has& one_cell)
    : map_(map), setup_(setup), cells_(cells), parameters_(map.parameters(Grid{}, Cell{}, setup)) {
  std::vector<std::string> missing;
  for (i32 p = 0; p < static_cast<i32>(parameters_.size()); p++)
    if (!add_stored(p, has, one_cell)) missing.push_back(escaped(parameters_[p].global_name));
  index_names();
  if (missing.empty()) return;
  Error e(Code::kUnaccounted, cat("the checkpoint lacks ", missing.size(), " of ", parameters_.size(),
                                  " parameters of the model"));
  e.each_note(missing);
  if (missing.size() == parameters_.size())
    e.found("none of Megatron's names")
        .help(
            "if it has the model's own names, as FSDP2 saves them: `mckpt convert to-fsdp SRC DST` takes its weights, and `mckpt convert reshard` keeps its optimizer states, too, under their own names");
  throw e;
}

KeyTable::KeyTable(const ModelMap& map, const RunSetup& setup, SplitOf split_of)
    : map_(map), setup_(setup), cells_{1, 1}, parameters_(map.parameters(Grid{}, Cell{}, setup)) {
  for (i32 p = 0; p < static_cast<i32>(parameters_.size()); p++) {
    const KeySplit split = split_of(parameters_[p]);
    split == KeySplit::kNone ? add_whole(p, true) : add_parts(p, split);
  }
  index_names();
}

void KeyTable::index_names() {
  for (i32 k = 0; k < size(); k++) by_name_.emplace((*this)[k].name, k);
}

i32 KeyTable::find(const std::string& name) const {
  auto at = by_name_.find(name);
  return at == by_name_.end() ? -1 : at->second;
}

i32 KeyTable::at(const std::string& name) const {
  const i32 key = find(name);
  if (key < 0) throw Error(Code::kInternal, "a rank has a key that is not in the table").tensor(name);
  return key;
}

std::span<const CheckpointKey> KeyTable::keys_of(i32 parameter) const {
  auto first = std::ranges::lower_bound(keys_, parameter, {}, &CheckpointKey::parameter);
  return {first, std::ranges::upper_bound(first, keys_.end(), parameter, {}, &CheckpointKey::parameter)};
}

// Rows in the order of one cell do not depend on the number of cells, so under one name they are the same on
// both sides.
i32 KeyTable::find_alike(const CheckpointKey& other) const {
  i32 own = other.by_cell ? -1 : find(other.name);
  return own < 0 || keys_[own].by_cell ? -1 : own;
}

void KeyTable::add_whole(i32 parameter, bool one_cell) {
  const ModelParameter& p = parameters_[parameter];
  bool fused = rule_named(p.row->rule).parts != KeySplit::kNone && p.holding->partition_dim == 0;
  bool by_cell = fused && !one_cell && cells_of(p) != 1;
  if (by_cell) check_cells(parameter);
  keys_.push_back({p.global_name, parameter, 0, p.shape(), by_cell});
}

void KeyTable::check_cells(i32 parameter) const {
  const ModelParameter& p = parameters_[parameter];
  const char* setting = p.expert() ? "`source_etp`" : "`source_tp`";
  i64 cells = cells_of(p), rows = p.shape()[0];
  if (cells == 0)
    throw Error(Code::kUnknownPartition,
                "the number of tensor-parallel ranks that wrote the tensor is not known")
        .tensor(p.global_name)
        .note("the tensor is stored fused, rank after rank, so the order of its rows depends on that number")
        .help(cat("give the number with ", setting));
  if (cells < 0 || cells > rows || rows % cells != 0)
    throw Error(Code::kUnknownPartition,
                "this number of tensor-parallel ranks cannot have written the tensor")
        .tensor(p.global_name)
        .expected(cat("a number that divides its ", counted(rows, "row")))
        .found(cat(cells))
        .help(cat("give the right number with ", setting));
  holding(parameter, {0, cells});  // throws if the sizes of the model do not divide by `cells`
}

void KeyTable::add_parts(i32 parameter, KeySplit split) {
  const ModelParameter& p = parameters_[parameter];
  for (const Piece& piece : pieces_of(split, map_.model(), {p.shape()}, Part{})) {
    std::vector<i64> dims(p.shape().dims().begin(), p.shape().dims().end());
    dims[0] = piece.rows;
    keys_.push_back({piece_key(split, p.global_name, piece), parameter, piece.first_row, Shape(dims), false});
  }
}

bool KeyTable::add_stored(i32 parameter, const Has& has, const Has& one_cell) {
  const ModelParameter& p = parameters_[parameter];
  for (KeySplit split : {p.split, rule_named(p.row->rule).parts}) {
    if (split == KeySplit::kNone) continue;
    Piece first = pieces_of(split, map_.model(), {p.shape()}, Part{})[0];
    if (!has(piece_key(split, p.global_name, first))) continue;
    add_parts(parameter, split);
    return true;
  }
  if (!has(p.global_name)) return false;
  add_whole(parameter, one_cell && one_cell(p.global_name));
  return true;
}

const Holding& KeyTable::holding(i32 parameter, Part part) const {
  const ModelParameter& p = parameters_[parameter];
  if (part.count == 1) return *p.holding;
  std::lock_guard lock(mutex_);
  std::unique_ptr<const Holding>& held = of_cells_[{p.holding.get(), part.count, part.index}];
  if (!held) held = std::make_unique<const Holding>(map_.holding(p, part, setup_));
  return *held;
}

void KeyTable::append_rows(const CheckpointKey& key, Part part, i64 first_row, i64 rows,
                           std::vector<ItemRun>& out) const {
  const ModelParameter& p = parameter(key);
  const Holding& held = holding(key.parameter, part);
  i64 row_items = held.shape.shape.row_items();
  i64 first = (key.first_row + first_row) * row_items;
  for (ItemRun run : cut(held.runs, {first, first + rows * row_items})) {
    if (is_copy(run.slot))
      run.slot = copy_of(p.sources[copied_slot(run.slot)]);
    else if (run.slot != kPaddingSlot)
      run.slot = p.sources[run.slot];
    out.push_back(run);
  }
}

std::vector<ItemRun> KeyTable::runs(const CheckpointKey& key, std::span<const i64> offsets,
                                    std::span<const i64> sizes) const {
  std::vector<ItemRun> out;
  i64 first = offsets.empty() ? 0 : offsets[0], rows = sizes.empty() ? 1 : sizes[0];
  if (key.by_cell) {
    i64 cells = cells_of(parameter(key)), cell_rows = key.shape[0] / cells;
    for (i64 row = first, end = first + rows; row < end;) {
      i64 cell = row / cell_rows, until = std::min(end, (cell + 1) * cell_rows);
      append_rows(key, {cell, cells}, row - cell * cell_rows, until - row, out);
      row = until;
    }
    return out;
  }
  // A box that is narrower than the tensor in a dimension other than the first has the columns of one cell.
  Part part;
  for (int d = 1; d < key.shape.rank(); d++) {
    std::size_t i = static_cast<std::size_t>(d);
    if (sizes[i] == key.shape[d]) continue;
    part = sizes[i] > 0 ? Part{offsets[i] / sizes[i], key.shape[d] / sizes[i]} : Part{};
    bool even = sizes[i] > 0 && offsets[i] % sizes[i] == 0 && key.shape[d] % sizes[i] == 0;
    const Holding* held = even ? &holding(key.parameter, part) : nullptr;
    if (!held || held->partition_dim != d ||
        !std::ranges::equal(held->shape.shape.dims().subspan(1), sizes.subspan(1)))
      throw Error(Code::kUnknownPartition, "a chunk is not the part of any tensor-parallel rank")
          .tensor(key.name)
          .expected("whole rows, or equal parts of the dimension that the parameter is split along")
          .found(cat("sizes ", dims_to_string(sizes), " at ", dims_to_string(offsets), " of ",
                     to_string(key.shape)));
  }
  append_rows(key, part, first, rows, out);
  return out;
}

}  // namespace mckpt::impl
