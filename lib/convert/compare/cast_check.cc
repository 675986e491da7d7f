#include "convert/compare/cast_check.h"

#include "core/base/error_code.h"
#include "core/base/text.h"
#include "core/items/dtype.h"
#include "io/verify/verify.h"

namespace mckpt::impl {
namespace {

// Whether type `to` has every value of type `from`. pre: they are equal, or both are floats of 16, 32 or 64
// bits, as casts require.
bool holds_values_of(DType to, DType from) {
  return to == from || to == DType::kF64 || (to == DType::kF32 && from != DType::kF64);
}

}  // namespace

void warn_of_casts(std::span<const ComparedTypes> tensors, VerifyReport& report) {
  std::vector<Finding> found;
  for (const ComparedTypes& t : tensors)
    if (!holds_values_of(t.tested, t.source))
      found.push_back({.code = Code::kUnequal,
                       .tensor = t.tensor,
                       .message = cat("the tensor is compared after a cast from ", dtype_name(t.source), " to ",
                                      dtype_name(t.tested), ", which cannot represent all of its values"),
                       .warning = true});
  i64 count = std::ssize(found);
  if (count > 0) report.add({"casts", Check::Status::kWarn, count, "tensors"}, std::move(found));
}

}  // namespace mckpt::impl
