// The tensors of a Hugging Face model as files of a folder: those of the model's source table, without the ones
// that are computed from others and not stored.
#pragma once

#include <functional>

#include "convert/jobs/chunk_jobs.h"
#include "io/safetensors/layout.h"

namespace mckpt::impl {

struct HfLayout {
  // `types`: by tensor of the source table.
  HfLayout(const ModelMap& map, const std::vector<DType>& types, i64 max_shard_bytes);

  std::string_view name(i64 i) const { return sources[written[static_cast<std::size_t>(i)]].name; }
  const TensorPlaces::Place& place(i64 tensor) const {
    return places.tensors[static_cast<std::size_t>(tensor)];
  }

  const SourceTable& sources;
  std::vector<i32> written;  // tensors of the source table, in the order of the layout
  SafetensorsLayout layout;
  TensorPlaces places;
};

}  // namespace mckpt::impl
