// Walks over the members of the config and of its parts.
#include "hf/config/dtype.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/items/dtype.h"
#include "hf/config/config_file.h"
#include "io/json/json.h"
#include "io/json/json_text.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kTypes[] = {"float32",       "float16",       "bfloat16",      "float64",
                                       "torch.float32", "torch.float16", "torch.bfloat16"};

// Calls visit(begin, end) for each value of `dtype` or `torch_dtype` that says the type of weights: of the
// object, and of parts of the model, which are called *_config; the type in which a quantised model computes
// is none.
template <typename Visit>
void each_type_of(std::string_view text, std::size_t object, Visit& visit) {
  JsonText(text).each_member(object, [&](std::string_view key, std::size_t begin, std::size_t end) {
    if (text[begin] == '{' && key.ends_with("_config") && key != "quantization_config")
      each_type_of(text, begin, visit);
    if (text[begin] != '"' || (key != "dtype" && key != "torch_dtype")) return true;
    if (std::ranges::find(kTypes, text.substr(begin + 1, end - begin - 2)) != std::end(kTypes))
      visit(begin + 1, end - 1);
    return true;
  });
}

// A text that is not a JSON object says no type: who needs the config refuses it.
template <typename Visit>
void each_type(std::string_view text, Visit&& visit) {
  try {
    if (check_json(text, JsonNumbers::kPython) != JsonType::kObject) return;
  } catch (const Error&) {
    return;
  }
  each_type_of(text, 0, visit);
}

}  // namespace

std::string with_config_dtype(std::string_view text, std::string_view dtype) {
  std::string out;
  std::size_t copied = 0;
  each_type(text, [&](std::size_t begin, std::size_t end) {
    out += cat(text.substr(copied, begin - copied), dtype);
    copied = end;
  });
  return out + std::string(text.substr(copied));
}

std::optional<DType> config_dtype(const SideFiles& files) {
  const std::string text = config_text(files);
  std::optional<DType> found;
  each_type(text, [&](std::size_t begin, std::size_t end) {
    if (!found) found = dtype_from_name(std::string_view(text).substr(begin, end - begin));
  });
  return found;
}

bool set_config_dtype(SideFiles& files, DType dtype) {
  const std::string text = config_text(files);
  std::string changed = with_config_dtype(text, dtype_name(dtype));
  return set_config_text(files, std::move(changed));
}

}  // namespace mckpt::impl
