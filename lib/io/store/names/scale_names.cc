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
  constexpr std::string_view kNames[] = {"input_scale",        "activation_scale",  "input_global_scale",
                                         "input_zero_point",   "output_zero_point", "output_scale",
                                         "output_global_scale"};
  // Queries, keys and values of an attention, or of its cache.
  constexpr std::string_view kEnds[] = {"_scale", "_zero_point", "_global_scale"};
  const std::string_view last = name.substr(name.rfind('.') + 1);
  const bool of_attention = last.starts_with("q_") || last.starts_with("k_") || last.starts_with("v_");
  return std::ranges::find(kNames, last) != std::end(kNames) ||
         (of_attention && std::ranges::find(kEnds, last.substr(1)) != std::end(kEnds));
}

}  // namespace mckpt::impl
