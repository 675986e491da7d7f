// What a pickle says of one tensor of torch: a view (offset, sizes, strides) of a storage that lies outside
// of the pickle. A DTensor is the view that this rank holds, with the size of the whole and how it is laid
// over the ranks.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "core/items/dtype.h"
#include "core/items/shape.h"
#include "io/torch/sharding.h"

namespace mckpt::impl {

class PickleValue;

// ('storage', class, key, location, count, [view of an older file: (key, first, count)])
struct TorchStorage {
  std::string_view key;
  DType dtype = DType::kU8;  // of its class; kU8 for an untyped one
  i64 bytes = 0;
  i64 view_begin_bytes = 0;  // of the view, where the storage is a view of its root
  i64 view_bytes = 0;        // equal to bytes where it is none
};

struct TorchTensor {
  TorchStorage storage;
  DType dtype = DType::kU8;
  i64 offset_items = 0;
  Shape shape;
  std::vector<i64> strides;  // in items
  std::optional<TorchSharding> sharding{};
};

// Whether the value is a tensor that read_torch_tensor() takes or refuses by its kind.
bool is_torch_tensor(PickleValue v);
// Tensors without one strided storage: sparse, nested, on the meta device. What they are, or "".
std::string_view unsupported_tensor(PickleValue v);

// pre: is_torch_tensor(v). The meshes of DTensors are read into `meshes`, once each. Throws kBadPickle,
// kBadStorage, kBadView, kBadShape, kSizeOverflow.
TorchTensor read_torch_tensor(PickleValue v, TorchMeshes& meshes);
// The shape of one that is a view of a storage and nothing more: never a DTensor. Throws kBadPickle.
Shape read_plain_shape(PickleValue v);
TorchStorage read_torch_storage(PickleValue v);
// Throws kBadStorage where a storage that was seen with so many bytes is said to have others.
void check_one_size(const TorchStorage& storage, i64 seen_bytes);

// Throws kBadView unless every item lies inside the storage and the view does not blow up a small storage.
void check_torch_view(const TorchTensor& tensor);

}  // namespace mckpt::impl
