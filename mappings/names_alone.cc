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

// With # for each component that is a number, or the placeholder of one.
std::string without_numbers(std::string_view name) {
  std::string out;
  while (true) {
    const std::string_view part = name.substr(0, name.find('.'));
    const bool number = part.find_first_not_of("0123456789") == part.npos;
    out += number || part.starts_with('{') ? "#" : part;
    if (part.size() == name.size()) return out;
    out += '.';
    name.remove_prefix(part.size() + 1);
  }
}

// The names of rows that no rule cuts, in no family, behind the module that has them: "#.ple.conv1d.weight".
std::set<std::string> whole_rows() {
  std::set<std::string> whole, cut;
  each_row([&](const Section& section, const Row& row) {
    if (section.tower != Tower::kText) return;
    const std::string_view front = section.megatron;
    const std::size_t dot = front.size() < 2 ? front.npos : front.rfind('.', front.size() - 2);
    (row.rule == "replicate" ? whole : cut)
        .insert(without_numbers(cat(front.substr(dot == front.npos ? 0 : dot + 1), row.megatron)));
  });
  for (const std::string& name : cut) whole.erase(name);
  return whole;
}

// ".part_" and ".weight" of the source "layer.table.part_{P}.weight".
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
      out.push_back({before.substr(before.rfind('.')), source.name.substr(at + 3)});
    }
  });
  return out;
}

}  // namespace

bool whole_by_name(std::string_view parameter) {
  static const std::set<std::string> whole = whole_rows();
  for (std::string end = without_numbers(parameter);; end.erase(0, end.find('.') + 1)) {
    if (whole.contains(end)) return true;
    if (end.find('.') == end.npos) return false;
  }
}

std::optional<PartName> part_by_name(std::string_view tensor) {
  static const std::vector<Around> sources = sources_in_parts();
  for (const auto& [front, back] : sources) {
    const std::size_t found = tensor.rfind(front);
    if (found == tensor.npos || !tensor.ends_with(back)) continue;
    const std::size_t at = found + front.size();
    const std::size_t digits = tensor.find_first_not_of("0123456789", at) - at;
    if (digits == 0 || at + digits + back.size() != tensor.size()) continue;
    return PartName{at, digits, cat(tensor.substr(0, found), back)};
  }
  return std::nullopt;
}

}  // namespace mckpt::impl
