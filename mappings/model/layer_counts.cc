// A layer counts as present if one of its tensors is there.
#include "mappings/model/layer_counts.h"

#include <charconv>
#include <vector>

#include "core/base/text.h"
#include "mappings/family.h"
#include "mappings/model/source_table.h"
#include "mappings/model/walk.h"

namespace mckpt::impl {
namespace {

// "0 to 3", "0, 2 to 5". pre: numbers is not empty.
std::string ranges(const std::vector<i64>& numbers) {
  std::string out;
  for (std::size_t i = 0, end = 0; i < numbers.size(); i = end) {
    for (end = i + 1; end < numbers.size() && numbers[end] == numbers[end - 1] + 1;) end++;
    out += cat(out.empty() ? "" : ", ", numbers[i]);
    if (end - i > 1) out += cat(end - i > 2 ? " to " : ", ", numbers[end - 1]);
  }
  return out;
}

}  // namespace

void LayerCounts::needed(const Site& site, bool found) {
  if (!site.layer || site.section->tower != Tower::kText || !site.section->own_layers ||
      site.section->scope != Scope::kLayers)
    return;
  for (std::string_view prefix : {site.section->hugging_face, site.section->also})
    if (const std::size_t number = prefix.find("{L}"); number != prefix.npos)
      fronts_.insert(prefix.substr(0, number));
  bool& any = found_[site.numbers['L']];
  any = any || found;
}

// Experts have numbers, too, so the text in front of a number decides.
bool LayerCounts::is_beyond(std::string_view name, const SourceTable& sources) {
  for (std::size_t at = 0, end = 0; (at = name.find_first_of("0123456789", end)) != name.npos;) {
    end = std::min(name.find_first_not_of("0123456789", at), name.size());
    i64 layer = 0;
    if (std::from_chars(name.data() + at, name.data() + end, layer).ec != std::errc() || layer < layers_ ||
        !fronts_.contains(name.substr(0, at)))
      continue;
    if (sources.find(cat(name.substr(0, at), "0", name.substr(end))) < 0) continue;
    beyond_.insert(layer);
    return true;
  }
  return false;
}

bool LayerCounts::is_absent(i64 layer) const {
  auto at = found_.find(layer);
  return at != found_.end() && !at->second;
}

std::string LayerCounts::sentence() const {
  std::vector<i64> present;
  for (const auto& [layer, found] : found_)
    if (found) present.push_back(layer);
  if (present.empty() || (present.size() == found_.size() && beyond_.empty())) return "";
  present.insert(present.end(), beyond_.begin(), beyond_.end());
  return cat("the config says ", counted(layers_, "layer"), ", the tensors are of ",
             present.size() == 1 ? "layer " : "layers ", ranges(present));
}

}  // namespace mckpt::impl
