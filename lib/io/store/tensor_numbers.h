// TensorNumbers: the tensors of one store by their names, for those who ask for many. find_tensor() goes
// through all names for each question, so that a file of a million tensors would take hours.
#pragma once

#include <string_view>

#include "core/base/name_hash.h"
#include "io/store/store.h"

namespace mckpt::impl {

// Lists the names at the first question. Not thread-safe. pre: the store outlives this.
class TensorNumbers {
 public:
  explicit TensorNumbers(const Store& store) : store_(store) {}

  // As find_tensor(): the first tensor of that name, or -1.
  i64 find(std::string_view name) {
    if (numbers_.empty())
      for (i64 t = 0; t < store_.tensor_count(); t++) numbers_.emplace(store_.name(t), t);
    const auto at = numbers_.find(name);
    return at == numbers_.end() ? -1 : at->second;
  }

 private:
  const Store& store_;
  NameMap<std::string_view, i64> numbers_;
};

}  // namespace mckpt::impl
