#include "convert/layers/run_pattern.h"

#include "convert/objects/pattern_args.h"
#include "io/dcp/run_args.h"

namespace mckpt {

std::optional<LayerPattern> pattern_of_run(const Store& store) {
  try {
    std::shared_ptr<const PickleValue> args = args_of(store);
    std::optional<std::string> text = args ? pattern_of_args(*args) : std::nullopt;
    return text ? std::optional(parse_pattern(*text, Dialect::kGrouped)) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace mckpt
