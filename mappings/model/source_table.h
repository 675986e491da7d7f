// The Hugging Face tensors of a model by name, as a folder has them or as a config promises them.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/items/dtype.h"
#include "core/base/int.h"
#include "core/base/name_hash.h"

namespace mckpt {

struct SourceTensor {
  std::string_view name;
  std::span<const i64> dims;   // meaningless unless header_known
  DType dtype = DType::kBF16;  // likewise
  bool header_known = true;    // false: an index names it, the file with its header is not here
};

class SourceTable {
 public:
  // `name` and `dims` outlive the table. Returns the tensor's index, or -1 when the name is there already.
  i32 add(const SourceTensor& tensor);
  // A tensor that no file has, so far; its name is kept here.
  i32 add_promised(std::string name);

  i32 find(std::string_view name) const;  // -1: there is none
  i32 size() const { return static_cast<i32>(tensors_.size()); }
  const SourceTensor& operator[](i32 i) const { return tensors_[static_cast<std::size_t>(i)]; }

 private:
  std::vector<SourceTensor> tensors_;
  NameMap<std::string_view, i32> by_name_;
  std::deque<std::string> names_;
};

}  // namespace mckpt
