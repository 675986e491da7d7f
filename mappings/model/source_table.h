// The Hugging Face tensors of a model by name: the tensors of a folder, or the tensors that a config
// promises.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "core/base/name_hash.h"
#include "core/items/dtype.h"

namespace mckpt::impl {

// One tensor as the headers describe it.
struct SourceTensor {
  std::string_view name;
  std::span<const i64> dims;   // valid only if header_known
  DType dtype = DType::kBF16;  // valid only if header_known
  bool header_known = true;    // false: an index names the tensor, but its file is not there
};

// Look-ups take constant time; the hash is keyed, because names come from files (core/base/name_hash.h).
class SourceTable {
 public:
  // `name` and `dims` must outlive the table. Returns the tensor's index, or -1 if the name exists already.
  i32 add(const SourceTensor& tensor);
  // Adds a tensor that no file has yet; the table keeps its name.
  i32 add_promised(std::string name);

  i32 find(std::string_view name) const;  // -1: there is none
  i32 size() const { return static_cast<i32>(tensors_.size()); }
  const SourceTensor& operator[](i32 i) const { return tensors_[i]; }

 private:
  std::vector<SourceTensor> tensors_;
  NameMap<std::string_view, i32> by_name_;
  std::deque<std::string> names_;
};

}  // namespace mckpt::impl
