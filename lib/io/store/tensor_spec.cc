// The error about tensors that a format cannot contain.
#include "io/store/tensor_spec.h"

#include "core/base/error.h"

namespace mckpt::impl {

std::string not_held(const TensorSpec& tensor, std::string_view why) {
  return cat("'", escaped(tensor.name), "': ", why);
}

void throw_not_held(const std::vector<std::string>& faults, std::string_view format) {
  if (faults.empty()) return;
  throw Error(Code::kNotHeld, cat(faults.size(), faults.size() == 1 ? " tensor" : " tensors",
                                  " cannot be stored in ", format))
      .each_note(faults);
}

}  // namespace mckpt::impl
