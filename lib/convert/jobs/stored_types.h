// The types in which a training run stores its parameters.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "core/base/int.h"
#include "core/items/dtype.h"

namespace mckpt::impl {

struct ModelParameter;

// The type in which a run stores each of its parameters. Main weights may have a type of their own; buffers
// have none and keep their type at run time, under v1 frozen parameters as well.
struct StoredTypes {
  std::optional<DType> main_dtype;  // none: there are no main weights
  // The type of single keys; it comes before all other rules. Thread-safe.
  std::function<std::optional<DType>(std::string_view key)> dtype_rule;
  bool frozen_have_main = false;  // as under v2

  DType of(const ModelParameter& p, std::string_view key) const;
};

}  // namespace mckpt::impl
