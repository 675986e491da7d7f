// HfLayout: the tensors of a Hugging Face model as files of a folder. They are the tensors of the model's
// source table, without those that are computed from others and not stored. Exports of checkpoints and of
// live models use it.
//
//   source table   0 embed   1 q   2 k   3 inv_freq (computed)        written   0 1 2
//                                                                     files     model-00001-of-00002: 0 1, ...
#pragma once

#include <functional>

#include "convert/jobs/tensor_places.h"
#include "core/base/int.h"
#include "io/safetensors/layout.h"

namespace mckpt::impl {

enum class DType : u8;
class ModelMap;
class SourceTable;
struct SafetensorsOriginal;

// The places of all tensors, computed by the constructor. The map outlives the object.
struct HfLayout {
  // `types`: by tensor of the source table. `max_shard_bytes`: of the tensors in one file. Throws what
  // SafetensorsLayout throws.
  // `original`: the layout of these files, if they have the same tensors; may be null.
  HfLayout(const ModelMap& map, const std::vector<DType>& types, i64 max_shard_bytes,
           const SafetensorsOriginal* original = nullptr);

  std::string_view name(i64 i) const;
  const TensorPlaces::Place& place(i64 tensor) const { return places.tensors[tensor]; }

  const SourceTable& sources;
  std::vector<i32> written;  // tensors of the source table, in the order of the layout
  SafetensorsLayout layout;
  TensorPlaces places;
};

}  // namespace mckpt::impl
