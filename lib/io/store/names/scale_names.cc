// The ends of the names, as ModelOpt, compressed-tensors, transformers, slime and gpt-oss write them.
#include "io/store/names/scale_names.h"

#include <algorithm>
#include <iterator>

namespace mckpt::impl {

std::string_view scaled_name(std::string_view name) {
  constexpr std::string_view kEnds[] = {"_scale_inv", "_scale",      "_scale_2", "_global_scale",
                                        "_shape",     "_zero_point", "_scales"};
  for (std::string_view end : kEnds) {
    if (!name.ends_with(end)) continue;
    std::string_view values = name.substr(0, name.size() - end.size());
    if (values.ends_with("weight") || values.ends_with("_proj")) return values;
  }
  return "";
}

bool is_activation_scale(std::string_view name) {
  constexpr std::string_view kNames[] = {"input_scale",
                                         "activation_scale",
                                         "input_global_scale",
                                         "input_zero_point",
                                         "output_zero_point",
                                         "output_scale",
                                         "k_scale",
                                         "v_scale"};
  return std::ranges::find(kNames, name.substr(name.rfind('.') + 1)) != std::end(kNames);
}

}  // namespace mckpt::impl
