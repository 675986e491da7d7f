// A parameter that two ranks share is listed by both, one behind the other.
#include "io/zero/turns.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"

namespace mckpt::impl {

std::string turns_fault(
    std::span<const NameMap<std::string_view, ZeroOptimizerStates::Address>* const> addresses,
    const ZeroGroup& parameters) {
  if (std::ranges::any_of(parameters, [](const ZeroParameter& p) { return p.shape.items() == 0; })) return "";
  std::vector<std::string_view> order;
  NameMap<std::string_view, i64> items;
  for (const auto* of_rank : addresses) {
    std::vector<std::pair<i64, std::string_view>> begins;
    for (const auto& [name, address] : *of_rank) {
      begins.emplace_back(address.begin, name);
      items[name] = checked_add(items[name], address.items, "the items of a parameter");
    }
    std::ranges::sort(begins);
    for (const auto& [begin, name] : begins)
      if (order.empty() || order.back() != name) order.push_back(name);
  }
  std::vector<std::string_view> turns;
  for (std::size_t first = 0; first < addresses.size(); first++)
    for (std::size_t i = first; i < order.size(); i += addresses.size()) turns.push_back(order[i]);
  if (turns.size() != parameters.size())
    return cat("it has ", counted(std::ssize(turns), "parameter"), ", param_shapes ", parameters.size());
  for (std::size_t i = 0; i < turns.size(); i++) {
    if (turns[i] != parameters[i].name)
      return cat("place ", i, " is the turn of ", escaped(turns[i]), ", in param_shapes of ",
                 escaped(parameters[i].name));
    if (const i64 found = items[turns[i]]; found != parameters[i].shape.items())
      return cat("it has ", counted(found, "item"), " of ", escaped(turns[i]), ", param_shapes ",
                 parameters[i].shape.items());
  }
  return "";
}

}  // namespace mckpt::impl
