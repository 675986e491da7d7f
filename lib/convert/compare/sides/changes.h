// Changes: what a conversion changes on purpose where both sides have the same names. Everything else that is
// not alike is a difference.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

enum class DType : u8;
class Store;

// A function that is empty: nothing.
struct Changes {
  // Why a tensor or an object of the source may be missing in the result; "": it may not.
  std::function<std::string(std::string_view name)> left_out{};
  bool of_tensors = false;  // `left_out` is about tensors alone
  // The type that a tensor of the source gets.
  std::function<DType(i64 tensor)> type{};
};

// Floats of the source are cast to the types that they have in the result, whatever these are: the types that
// were asked for are a check of their own. Refers to both arguments.
Changes casts_to(const Store& tested, const Store& source);

}  // namespace mckpt::impl
