// The tensors of a Hugging Face model as files of a folder: those of the model's source table, without the ones
// that are computed from others and not stored.
#pragma once

#include <functional>

#include "convert/jobs/tensor_places.h"
#include "core/base/int.h"
#include "io/safetensors/layout.h"

namespace mckpt::impl {

enum class DType : u8;
class ModelMap;
class SourceTable;

struct HfLayout {
  // `types`: by tensor of the source table.
  HfLayout(const ModelMap& map, const std::vector<DType>& types, i64 max_shard_bytes);

  std::string_view name(i64 i) const;
  const TensorPlaces::Place& place(i64 tensor) const {
    return places.tensors[tensor];
  }

  const SourceTable& sources;
  std::vector<i32> written;  // tensors of the source table, in the order of the layout
  SafetensorsLayout layout;
  TensorPlaces places;
};

}  // namespace mckpt::impl
