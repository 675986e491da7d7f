// Two short tables decide: entries that stay whole, and entries whose dicts are taken apart, with the number
// of nested levels. Keys of a dict that are not texts are skipped.
#include "convert/objects/run_objects.h"
#include "core/base/text.h"

#include <algorithm>

namespace mckpt::impl {
namespace {

constexpr std::string_view kWhole[] = {"args", "checkpoint_version", "iteration",
                                       "num_floating_point_operations_so_far"};

struct Nested {
  std::string_view name;
  int levels;  // of nested dicts that are taken apart
};
constexpr Nested kNested[] = {{"opt_param_scheduler", 1}, {"optimizer.param_to_group_meta", 2}};

// Walks down `levels` nested dicts and joins their keys with dots.
void take_fields(const std::string& name, PickleValue value, int levels,
                 const std::function<void(std::string, PickleValue)>& take) {
  if (levels == 0) return take(name, value);
  for (PickleEntry e : value.entries())
    if (e.key.is(PickleValue::Kind::kText))
      take_fields(cat(name, ".", e.key.text()), e.value, levels - 1, take);
}

}  // namespace

bool take_run_object(std::string_view name, PickleValue value,
                     const std::function<void(std::string name, PickleValue value)>& take) {
  bool whole = std::ranges::find(kWhole, name) != std::end(kWhole);
  if (whole) take(std::string(name), value);
  auto nested = std::ranges::find(kNested, name, &Nested::name);
  if (nested == std::end(kNested)) return whole;
  take_fields(std::string(name), value, nested->levels, take);
  return true;
}

}  // namespace mckpt::impl
