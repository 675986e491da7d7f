#include "io/tensor_spec.h"

#include "core/error.h"

namespace mckpt {

std::string not_held(const TensorSpec& tensor, std::string_view why) {
  return cat("'", escaped(tensor.name), "': ", why);
}

void throw_not_held(const std::vector<std::string>& faults, std::string_view format) {
  constexpr std::size_t kMostShown = 5;
  if (faults.empty()) return;
  Error e(Code::kNotHeld,
          cat(faults.size(), faults.size() == 1 ? " tensor" : " tensors", " cannot be held by ", format));
  for (std::size_t i = 0; i < faults.size() && i < kMostShown; i++) e.note(faults[i]);
  if (faults.size() > kMostShown) e.note(cat("and ", faults.size() - kMostShown, " more"));
  throw e.help("--exclude leaves tensors out");
}

}  // namespace mckpt
