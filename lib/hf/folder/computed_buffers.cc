// Known by names and, where parameters may have the same name, by shapes: what transformers 5.23 ignores in
// the files of a model.
#include "hf/folder/computed_buffers.h"

#include <algorithm>
#include <utility>

#include "core/base/text.h"
#include "hf/folder/known_tensors.h"
#include "hf/folder/model_folder.h"
#include "hf/folder/name_words.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kLastParts[] = {"position_ids", "masked_bias"};
// Causal masks of GPT-2, GPT-J and GPT-NeoX, whose names mean a vector in other models.
constexpr std::string_view kMasks[] = {"attn.bias", "crossattention.bias", "attention.bias"};

bool ends_with_parts(std::string_view name, std::string_view parts) {
  return name.ends_with(parts) &&
         (name.size() == parts.size() || name[name.size() - parts.size() - 1] == '.');
}

// [1, 1, n, n]
bool is_mask(const std::vector<i64>& dims) {
  return dims.size() == 4 && dims[0] == 1 && dims[1] == 1 && dims[2] == dims[3];
}

bool has_name_of_mask(std::string_view name) {
  return std::ranges::any_of(kMasks, [&](std::string_view parts) { return ends_with_parts(name, parts); });
}

bool has_name_of_buffer(std::string_view name) {
  return is_computed(name) ||
         std::ranges::any_of(kLastParts, [&](std::string_view part) { return ends_with_parts(name, part); });
}

bool is_buffer(const KnownTensor& t) {
  return has_name_of_buffer(t.name) || (t.dims && is_mask(*t.dims) && has_name_of_mask(t.name));
}

}  // namespace

// The checkpoint may have its names behind a front.
std::vector<std::string> leave_out_buffers(KnownTensors& own, const Store& store) {
  std::vector<std::string> stored, out;
  for (i64 t = 0; t < store.tensor_count(); t++)
    if (has_name_of_buffer(store.name(t)) || has_name_of_mask(store.name(t)))
      stored.push_back(without_wrappers(store.name(t)));
  std::erase_if(own.tensors, [&](const KnownTensor& t) {
    const bool left = is_buffer(t) && std::ranges::none_of(stored, [&](std::string_view name) {
                        return ends_with_parts(name, t.name);
                      });
    if (left) out.push_back(t.name);
    return left;
  });
  return out;
}

}  // namespace mckpt::impl
