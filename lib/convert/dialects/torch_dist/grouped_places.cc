// A name is translated by way of its physical layer. MTP layers keep their names.
#include "convert/dialects/torch_dist/grouped_places.h"

#include "core/base/error.h"
#include "core/hybrid/keys.h"

namespace mckpt::impl {

GroupedPlaces::GroupedPlaces(const LayerPattern& groups)
    : members_(groups, LayerForm::kMember), stored_(groups, LayerForm::kLogical) {
  refuse_same_keys(groups);
}

std::string GroupedPlaces::of(std::string_view name) const {
  std::optional<NameFault> fault;
  const LayerName found = members_.find(name, fault);
  if (fault) throw Error(fault->code, fault->message).tensor(name);
  const bool moved = found.kind != LayerName::Kind::kOther && found.depth < 0;
  return moved ? stored_.text(found) : std::string(name);
}

}  // namespace mckpt::impl
