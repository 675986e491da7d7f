// Adds the rows of a diff and the equal tensors to cells; kinds that did not change are left out first.
#include "page/data/change_map.h"

#include <algorithm>
#include <map>
#include <set>

#include "convert/compare/diff/diff.h"
#include "core/base/names.h"

namespace mckpt::impl {
namespace {

using Kind = DiffRow::Kind;

void add_row(ChangeCell& cell, const DiffRow& r) {
  cell.only_a += r.kind == Kind::kOnlyA, cell.only_b += r.kind == Kind::kOnlyB;
  cell.header += r.kind == Kind::kShape || r.kind == Kind::kDtype || r.kind == Kind::kAttribute;
  cell.casts += r.kind == Kind::kCast;
  if (r.kind != Kind::kValues) return;
  (r.alike() ? cell.within : cell.differ)++;
  cell.moved |= !r.hint.empty();
  cell.not_finite += r.not_finite() > 0;
  if (std::optional<double> l2 = r.relative_l2()) cell.largest = std::max(cell.largest.value_or(0), *l2);
}

bool has_change(const ChangeKind& kind) {
  return std::ranges::any_of(kind.cells, [](const ChangeCell& c) {
    return c.differ + c.within + c.only_a + c.only_b + c.header + c.casts > 0;
  });
}

class Changes {
 public:
  ChangeCell& cell(const std::string& name) {
    const TensorPlace place = tensor_place(name);
    auto [known, fresh] = numbers_.try_emplace({place.section, place.kind()}, kinds_.size());
    if (fresh) kinds_.push_back({place.section, place.kind(), module_part(name)}), cells_.emplace_back();
    ChangeCell& cell = cells_[known->second][place.layer];
    cell.layer = place.layer;
    return cell;
  }

  ChangeMap take(i64 most_cells) {
    ChangeMap out;
    for (std::size_t k = 0; k < kinds_.size(); k++)
      for (const auto& [layer, cell] : cells_[k]) kinds_[k].cells.push_back(cell);
    // Changed kinds come first, so that they are not left out.
    auto same = std::stable_partition(kinds_.begin(), kinds_.end(), has_change);
    i64 count = 0;
    for (auto kind = kinds_.begin(); kind != kinds_.end(); kind++) {
      count += std::ssize(kind->cells);
      const bool room = count <= most_cells || kind < same;
      room ? out.kinds.push_back(std::move(*kind)) : void(out.kinds_left_out++);
    }
    // Sections one after the other, and in each the order of the model.
    std::ranges::stable_sort(out.kinds, [](const ChangeKind& a, const ChangeKind& b) {
      return a.section != b.section ? natural_less(a.section, b.section) : natural_less(a.kind, b.kind);
    });
    return out;
  }

 private:
  std::map<std::pair<std::string, std::string>, std::size_t> numbers_;
  std::vector<ChangeKind> kinds_;
  std::vector<std::map<i64, ChangeCell>> cells_;  // by kind and layer
};

}  // namespace

ChangeMap change_map(const Diff& diff, i64 most_cells) {
  Changes changes;
  const std::set<std::string_view> compared(diff.report.compared.begin(), diff.report.compared.end());
  for (std::string_view name : compared) changes.cell(std::string(name)).tensors++;
  std::set<std::string_view> counted = compared;
  for (const DiffRow& row : diff.rows) {
    if (!row.of_tensor()) continue;
    ChangeCell& cell = changes.cell(row.name);
    cell.tensors += counted.insert(row.name).second;
    add_row(cell, row);
  }
  return changes.take(most_cells);
}

}  // namespace mckpt::impl
