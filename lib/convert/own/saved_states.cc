// The keys of dicts in front of a name are judged; the whole name only where there are none, or they are not
// known.
#include "convert/own/saved_states.h"

#include <optional>

#include "convert/own/saved_dicts.h"
#include "hf/folder/name_words.h"
#include "io/dcp/keys/key.h"
#include "io/dcp/write/layout.h"
#include "io/dcp/write/paths.h"

namespace mckpt::impl {

SavedStates::SavedStates(const Store& store) {
  const std::optional<DcpPaths> paths = saved_paths(store);
  if (!paths) return;
  for (const auto& [name, at] : *paths)
    if (!at.dots.empty()) dict_bytes_.emplace(name, static_cast<std::size_t>(at.dots.back()));
}

bool SavedStates::has(std::string_view name) const {
  if (is_of_optimizer(name)) return true;
  const auto at = dict_bytes_.find(std::string(name));
  return is_in_optimizer(at == dict_bytes_.end() ? name : name.substr(0, at->second));
}

}  // namespace mckpt::impl
