// A number is that of a layer after a component such as `layers`, that of an expert after `experts`, and part
// of the name elsewhere.
#include "mappings/map_file/name_kinds.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "core/base/text.h"
#include "mappings/model/source_table.h"

namespace mckpt::impl {
namespace {

bool counts_layers(std::string_view part) {
  for (std::string_view word : {"layers", "layer", "h", "blocks", "block"})
    if (part == word) return true;
  return part.ends_with("list");
}

bool is_number(std::string_view part, i64& n) {
  auto [end, ec] = std::from_chars(part.data(), part.data() + part.size(), n);
  return ec == std::errc{} && end == part.data() + part.size() && n >= 0;
}

// The name with placeholders, and the number of its layer; -1 if it has none.
std::string kind_of(std::string_view name, i64& layer) {
  std::string out;
  std::string_view before;
  layer = -1;
  while (true) {
    std::string_view part = name.substr(0, name.find('.'));
    i64 n = 0;
    bool number = is_number(part, n);
    if (number && layer < 0 && counts_layers(before))
      layer = n, out += "{L}";
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
    i64 layer = -1;
    std::string name = kind_of(tensors[t].name, layer);
    auto [at, is_new] = places.try_emplace(name, kinds.size());
    std::span<const i64> dims = tensors[t].dims;
    if (is_new) kinds.push_back({std::move(name), {}, {}, {dims.begin(), dims.end()}});
    NameKind& kind = kinds[at->second];
    kind.tensors.push_back(t);
    kind.sized = kind.sized && tensors[t].header_known && std::ranges::equal(dims, kind.dims);
    if (layer >= 0) kind.layers.push_back(layer);
  }
  for (NameKind& kind : kinds) {
    std::ranges::sort(kind.layers);
    kind.layers.erase(std::unique(kind.layers.begin(), kind.layers.end()), kind.layers.end());
  }
  return kinds;
}

std::string kind_name(std::string_view pattern) {
  std::string name(pattern);
  for (std::size_t at = name.find('{'); at + 2 < name.size() && at != name.npos; at = name.find('{', at + 1))
    if (name[at + 1] != 'E') name[at + 1] = 'L';
  i64 layer = -1;
  return kind_of(name, layer);  // numbers that the pattern has itself
}

}  // namespace mckpt::impl
