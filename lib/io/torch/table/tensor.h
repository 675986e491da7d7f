// The description of one tensor of torch in a pickle: a view (offset, sizes, strides) of a storage that is
// outside of the pickle. A DTensor is the view that this rank has, with the size of the whole and how it is
// distributed.
//
//   storage "0"   0 1 2 3 4 5 6 7 8 9 10 11
//   (offset 0, sizes (3, 4), strides (4, 1))    the whole, row by row
//   (offset 4, sizes (4),    strides (1))       row 1: 4 5 6 7
//   (offset 0, sizes (4, 3), strides (1, 4))    the transpose, without a copy
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "core/items/dtype.h"
#include "core/items/shape.h"
#include "io/torch/table/sharding.h"

namespace mckpt::impl {

class PickleValue;
struct TorchCall;

constexpr int kMostWrappings = 8;  // of a tensor: parameters of tensors of types of ...

// A storage as its persistent id names it:
//
//   ('storage', class, key, location, count, [view of an older file: (key, first, count)])
struct TorchStorage {
  std::string_view key;
  DType dtype = DType::kU8;  // of its class; kU8 for an untyped one
  i64 bytes = 0;
  i64 view_begin_bytes = 0;  // of the view, where the storage is a view of its root
  i64 view_bytes = 0;        // equal to bytes where it is none
};

// One tensor, not yet checked against its storage (check_torch_view()).
struct TorchTensor {
  TorchStorage storage;
  DType dtype = DType::kU8;
  i64 offset_items = 0;
  Shape shape;
  std::vector<i64> strides;  // in items
  std::optional<TorchSharding> sharding{};
  bool nothing = false;  // a ShardedTensor of which this rank has no shard: no items, and no storage
};

// Whether the value is a tensor, also one that read_torch_tensors() then refuses.
bool is_torch_tensor(PickleValue v);
// The kind of a tensor without one strided storage (sparse, nested, on the meta device), or "".
std::string_view unsupported_tensor(PickleValue v);

// pre: is_torch_tensor(v). The meshes of DTensors are read into `meshes`, each once. Throws kBadPickle,
// kBadStorage, kBadView, kBadShape, kSizeOverflow.
TorchTensor read_torch_tensor(PickleValue v, TorchMeshes& meshes);
// The tensors of a value: one, or of a ShardedTensor the shards of this rank. Throws as read_torch_tensor().
std::vector<TorchTensor> read_torch_tensors(PickleValue v, TorchMeshes& meshes);
// The tensor that a parameter, or this rank's piece that a DTensor, is made of; None for other calls.
PickleValue wrapped_tensor(const TorchCall& call);
// The fields of a tensor's state that say where the tensor or its pieces are, and are read with it.
std::span<const std::string_view> placing_fields(const TorchCall& call);
// The shape of a tensor that is a view of a storage, never a DTensor. Throws as read_torch_tensor(), and as
// check_torch_view().
Shape read_plain_shape(PickleValue v);
// Throws kBadStorage, kBadPickle.
TorchStorage read_torch_storage(PickleValue v);
// Throws kBadStorage if a storage that was named before with `seen_bytes` is named with another size.
void check_one_size(const TorchStorage& storage, i64 seen_bytes);

// Throws kBadView unless every item is inside the storage, and the view does not repeat a small storage up
// to an enormous size.
void check_torch_view(const TorchTensor& tensor);

}  // namespace mckpt::impl
