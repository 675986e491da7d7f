// Lays the tensors out in the order of the source table; checkpoints and live models are exported alike.
#include "convert/plan/hf_layout.h"

#include "io/store/tensor_spec.h"
#include "mappings/model/expand.h"

namespace mckpt::impl {
namespace {

// The tensors of the table that are stored: all but those that no parameter reads and that are not a copy.
std::vector<i32> stored_tensors(const ModelMap& map) {
  std::vector<bool> computed(static_cast<std::size_t>(map.sources().size()));
  for (const UnreadTensor& u : map.unread())
    if (u.of < 0) computed[u.tensor] = true;
  std::vector<i32> out;
  for (i32 t = 0; t < map.sources().size(); t++)
    if (!computed[t]) out.push_back(t);
  return out;
}

SafetensorsLayout lay_out(const SourceTable& sources, std::span<const i32> written,
                          const std::vector<Shape>& shapes, const std::vector<DType>& types,
                          i64 max_shard_bytes, const SafetensorsOriginal* original) {
  std::vector<TensorSpec> specs;
  for (i32 t : written) {
    std::size_t i = static_cast<std::size_t>(t);
    specs.push_back({sources[t].name, types[i], shapes[i].dims()});
  }
  if (original)
    if (std::optional<SafetensorsLayout> same = SafetensorsLayout::like(specs, *original))
      return *std::move(same);
  return SafetensorsLayout(specs, SafetensorsOptions{.max_shard_bytes = max_shard_bytes});
}

}  // namespace

HfLayout::HfLayout(const ModelMap& map, const std::vector<DType>& types, i64 max_shard_bytes,
                   const SafetensorsOriginal* original)
    : sources(map.sources()),
      written(stored_tensors(map)),
      layout(lay_out(sources, written, map.source_shapes(), types, max_shard_bytes, original)) {
  std::vector<Shape> shapes = map.source_shapes();
  places.tensors.resize(shapes.size());
  for (std::size_t i = 0; i < written.size(); i++) {
    i64 at = static_cast<i64>(i);
    std::size_t t = static_cast<std::size_t>(written[i]);
    places.tensors[t] = {layout.file(at), layout.offset(at), types[t], shapes[t]};
  }
}

std::string_view HfLayout::name(i64 i) const { return sources[written[i]].name; }

}  // namespace mckpt::impl
