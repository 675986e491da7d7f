// The names of engines and strategies, as options and messages write them.
#include "core/fsdp/strategy.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/one_of.h"
#include "core/base/text.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kEngines[] = {"v1", "v2"};
constexpr std::string_view kStrategies[] = {"no_shard", "optim", "optim_grads", "optim_grads_params"};

template <typename Enum, std::size_t N>
Enum from_name(std::string_view name, const std::string_view (&names)[N], const char* what) {
  const auto* at = std::find(names, names + N, name);
  if (at == names + N)
    throw Error(Code::kUsage, cat("there is no such ", what))
        .expected(one_of(names))
        .found(cat("'", escaped(name), "'"));
  return static_cast<Enum>(at - names);
}

}  // namespace

std::string_view engine_name(Engine engine) { return kEngines[static_cast<int>(engine)]; }
std::string_view strategy_name(Strategy strategy) { return kStrategies[static_cast<int>(strategy)]; }
Engine engine_from_name(std::string_view name) { return from_name<Engine>(name, kEngines, "FSDP engine"); }
Strategy strategy_from_name(std::string_view name) {
  return from_name<Strategy>(name, kStrategies, "sharding strategy");
}

}  // namespace mckpt::impl
