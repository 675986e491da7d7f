// Which tensors two stores do not have alike, before any byte is compared.
#pragma once

#include <string>
#include <vector>

#include "io/store.h"

namespace mckpt {

// What of the source's tensors `there` lacks or has with another type or shape, then what it has besides; a
// line each. `may_lack`: by tensor of the source.
std::vector<std::string> compare_tensor_lists(const Store& source, const std::vector<bool>& may_lack,
                                              const Store& there);

}  // namespace mckpt
