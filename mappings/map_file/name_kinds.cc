// A number counts a layer after a component such as `layers`, an expert after `experts`, and is part of the
// name elsewhere.
#include "mappings/map_file/name_kinds.h"

#include <algorithm>
#include <map>

#include "core/base/text.h"
#include "mappings/model/source_table.h"
#include "mappings/names_alone.h"

namespace mckpt::impl {
namespace {

bool counts_layers(std::string_view part) {
  for (std::string_view word : {"layers", "layer", "h", "blocks", "resblocks", "block"})
    if (part == word) return true;
  return part.ends_with("list");
}

bool is_number(std::string_view part) {
  return !part.empty() && part.find_first_not_of("0123456789") == part.npos;
}

// The name with placeholders. If there are several numbers of layers, the first is replaced.
std::string kind_of(std::string_view name) {
  if (const std::optional<PartName> part = part_by_name(name))
    return cat(kind_of(name.substr(0, part->at)), "{P}", name.substr(part->at + part->digits));
  std::string out;
  std::string_view before;
  bool in_layer = false;
  while (true) {
    std::string_view part = name.substr(0, name.find('.'));
    const bool number = is_number(part);
    if (number && !in_layer && counts_layers(before))
      in_layer = true, out += "{L}";
    else if (number && (before == "experts" || before == "expert"))
      out += "{E}";
    else
      out += part;
    if (part.size() == name.size()) return out;
    out += '.';
    before = part;
    name.remove_prefix(part.size() + 1);
  }
}

}  // namespace

std::vector<NameKind> name_kinds(const SourceTable& tensors) {
  std::vector<NameKind> kinds;
  std::map<std::string, std::size_t> places;
  for (i32 t = 0; t < tensors.size(); t++) {
    std::string name = kind_of(tensors[t].name);
    auto [at, is_new] = places.try_emplace(name, kinds.size());
    std::span<const i64> dims = tensors[t].dims;
    if (is_new) kinds.push_back({std::move(name), 0, {dims.begin(), dims.end()}});
    NameKind& kind = kinds[at->second];
    kind.tensors++;
    kind.sized = kind.sized && tensors[t].header_known && std::ranges::equal(dims, kind.dims);
  }
  return kinds;
}

std::string kind_name(std::string_view pattern) {
  std::string name(pattern);
  for (std::size_t at = name.find('{'); at + 2 < name.size() && at != name.npos; at = name.find('{', at + 1))
    if (name[at + 1] != 'P')
      name[at + 1] = name[at + 1] == 'E' || name[at + 1] == 'S' ? 'E' : 'L';  // both count experts
  return kind_of(name);  // numbers that the pattern has itself
}

}  // namespace mckpt::impl
