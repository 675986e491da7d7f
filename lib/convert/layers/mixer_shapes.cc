#include "convert/layers/mixer_shapes.h"

namespace mckpt {

MixerShapes::MixerShapes(const Store& store, const LayerNames& names) : store_(store) {
  layer_.resize(static_cast<std::size_t>(names.pattern().physical_layers()));
  for (i32 t = 0; t < static_cast<i32>(store.tensor_count()); t++) {
    KeySection section = key_section(DcpDialect::kTorchDist, store.name(t));
    std::optional<NameFault> ignored;
    if (!section.model()) continue;
    LayerName name = names.find(section.name, ignored);
    if (name.kind == LayerName::Kind::kLayer && name.depth < 0 && name.layer >= 0)
      layer_[static_cast<std::size_t>(name.layer)].emplace(name.rest, t);
  }
}

std::vector<NativePart> MixerShapes::parts(i32 tensor, i64 layer, std::string_view fused,
                                           std::optional<NameFault>& fault) const {
  std::span<const i64> dims = store_.dims(tensor);
  const auto& names = layer_[static_cast<std::size_t>(layer)];
  auto dims_of = [&](std::string_view rest) {
    auto at = names.find(rest);
    return at == names.end() ? std::span<const i64>() : store_.dims(at->second);
  };
  std::vector<NativePart> parts = native_parts(fused, dims_of, fault);
  if (fault) return {};
  if (dims.empty()) {
    fault = {Code::kBadSplit, "has no rows, so that it has no parts"};
    return {};
  }
  for (i64 c = 0; c < store_.chunk_count(tensor); c++)
    if (store_.chunk(tensor, c).sizes[0] != dims[0]) {
      fault = {
          Code::kBadSplit,
          "is whole, but its rows lie in several chunks: which rank has which rows of a part is not known"};
      return {};
    }
  if (dims[0] != parts.back().first_row + parts.back().rows)
    fault = {Code::kBadSplit, cat("has ", dims[0], " rows, not those of its parameter")};
  return parts;
}

}  // namespace mckpt
