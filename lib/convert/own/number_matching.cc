// One pass over the parameters; each group has a place that moves on when its next number is taken.
#include "convert/own/number_matching.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/items/shape.h"

namespace mckpt::impl {
namespace {

struct Place {
  const NumberGroup* group;
  std::size_t next = 0;

  bool done() const { return next == group->numbers.size(); }
  const std::string& number() const { return group->numbers[next]; }
};

}  // namespace

NumberedStates match_numbers(const std::vector<OrderedParameter>& order,
                             const std::vector<NumberGroup>& groups,
                             const NameMap<std::string, std::vector<i64>>& shapes,
                             const std::function<void(std::string why)>& refuse) {
  NumberedStates out;
  std::vector<Place> places;
  for (const NumberGroup& g : groups) places.push_back({&g});
  auto fits = [&](const Place& place, const OrderedParameter& p) {
    if (place.done() || place.group->experts.value_or(p.expert) != p.expert) return false;
    auto shape = shapes.find(place.number());
    return shape == shapes.end() || shape->second == p.dims;
  };
  for (const OrderedParameter& p : order) {
    Place* taker = nullptr;
    for (Place& place : places) {
      if (!fits(place, p)) continue;
      if (taker)
        refuse(cat("parameter ", escaped(p.key), " ", dims_to_string(p.dims), " may be number ",
                   taker->number(), " of group ", taker->group->index, " or number ", place.number(),
                   " of group ", place.group->index, ": both have that shape"));
      taker = &place;
    }
    if (!taker)
      return refuse(cat(
                 "parameter ", escaped(p.key), " ", dims_to_string(p.dims),
                 " has the shape of no group's next number: the groups do not list all parameters in the order of the model")),
             out;
    const std::string& number = taker->number();
    taker->next++;
    out.key_of.emplace(number, p.key);
    // A parameter that was not trained has neither states nor options.
    if (shapes.contains(number)) out.group_of.emplace_back(p.key, taker->group->index);
  }
  for (const Place& place : places)
    if (!place.done())
      refuse(cat("group ", place.group->index, " has ", place.group->numbers.size() - place.next,
                 " numbers more than the model has parameters"));
  return out;
}

}  // namespace mckpt::impl
