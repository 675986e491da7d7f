// Both answers are looked up in lists that are made once, of the tables.
#include "mappings/names_alone.h"

#include <set>
#include <vector>

#include "core/base/text.h"
#include "mappings/family.h"
#include "mappings/registry.h"

namespace mckpt::impl {
namespace {

template <typename Visit>
void each_row(Visit&& visit) {
  for (const Family* family : all_families())
    for (const Section& section : family->sections)
      for (const RowList& list : row_lists(section))
        for (const Row& row : list.rows) visit(section, row);
}

// The names of rows that no rule cuts, in no family.
std::set<std::string_view> whole_rows() {
  std::set<std::string_view> whole, cut;
  each_row([&](const Section& section, const Row& row) {
    if (section.tower == Tower::kText) (row.rule == "replicate" ? whole : cut).insert(row.megatron);
  });
  for (std::string_view name : cut) whole.erase(name);
  return whole;
}

// "table.part_" and ".weight" of the source "layer.table.part_{P}.weight".
struct Around {
  std::string_view front, back;
};

std::vector<Around> sources_in_parts() {
  std::vector<Around> out;
  each_row([&](const Section&, const Row& row) {
    for (const Source& source : row.sources) {
      if (!source.in_parts()) continue;
      const std::size_t at = source.name.find("{P}");
      const std::string_view before = source.name.substr(0, at);
      const std::size_t table = before.rfind('.', before.rfind('.') - 1);
      out.push_back({before.substr(table == before.npos ? 0 : table + 1), source.name.substr(at + 3)});
    }
  });
  return out;
}

}  // namespace

bool whole_by_name(std::string_view parameter) {
  static const std::set<std::string_view> whole = whole_rows();
  for (std::string_view end = parameter;; end.remove_prefix(end.find('.') + 1)) {
    if (whole.contains(end)) return true;
    if (end.find('.') == end.npos) return false;
  }
}

std::optional<PartName> part_by_name(std::string_view tensor) {
  static const std::vector<Around> sources = sources_in_parts();
  for (const auto& [front, back] : sources) {
    const std::size_t found = tensor.rfind(front);
    if (found == tensor.npos || !tensor.ends_with(back)) continue;
    const std::size_t at = found + front.size(), dot = tensor.rfind('.', at);
    const std::size_t digits = tensor.find_first_not_of("0123456789", at) - at;
    if (digits == 0 || at + digits + back.size() != tensor.size()) continue;
    return PartName{at, digits, cat(tensor.substr(0, dot), back)};
  }
  return std::nullopt;
}

}  // namespace mckpt::impl
