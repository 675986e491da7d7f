// A list of tensors with an index by name. Names are views of the caller's memory, or of the table's own
// deque, which never moves them.
#include "mappings/model/source_table.h"

namespace mckpt::impl {

i32 SourceTable::add(const SourceTensor& tensor) {
  if (!by_name_.try_emplace(tensor.name, size()).second) return -1;
  tensors_.push_back(tensor);
  return size() - 1;
}

i32 SourceTable::add_promised(std::string name) {
  if (i32 known = find(name); known >= 0) return known;
  names_.push_back(std::move(name));
  return add({names_.back(), {}, DType::kBF16, false});
}

i32 SourceTable::find(std::string_view name) const {
  auto found = by_name_.find(name);
  return found == by_name_.end() ? -1 : found->second;
}

}  // namespace mckpt::impl
