// The types of the targets decide.
#include "convert/jobs/unrounded_sources.h"

#include "convert/keys/key_table.h"
#include "convert/keys/stored_chunks.h"
#include "io/store/unrounded.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {

std::vector<bool> unrounded_tensors(const Store& source, const ChunkList& to) {
  const UnroundedValues* values = source.unrounded();
  if (!values) return {};
  std::vector<bool> out(static_cast<std::size_t>(source.tensor_count()));
  bool any = false;
  for (i64 c = 0; c < to.size(); c++) {
    const i32 tensor = to.key(c);
    if (to.dtype(c) != source.dtype(tensor) && values->is_rounded(tensor)) any = out[tensor] = true;
  }
  return any ? out : std::vector<bool>();
}

DType read_type(const Store& source, i64 tensor, const std::vector<bool>& unrounded) {
  return !unrounded.empty() && unrounded[tensor] ? DType::kF32 : source.dtype(tensor);
}

std::vector<bool> unrounded_families(const Store& source, const KeyTable& keys, const ChunkList& to,
                                     i64 count, const FamilyOf& family_of) {
  const UnroundedValues* values = source.unrounded();
  if (!values) return {};
  std::vector<bool> rounded(static_cast<std::size_t>(count)), out(rounded.size());
  std::vector<bool> in_pieces(rounded.size());  // float32 is given of whole tensors
  for (i32 t = 0; t < static_cast<i32>(keys.map().sources().size()); t++)
    if (i32 family = family_of.tensor(t); family >= 0) {
      if (values->is_rounded(t)) rounded[family] = true;
      if (source.chunk_count(t) != 1) in_pieces[family] = true;
    }
  bool any = false;
  for (i64 c = 0; c < to.size(); c++) {
    const i32 parameter = keys[to.key(c)].parameter, family = family_of.parameter(parameter);
    if (rounded[family] && !in_pieces[family] && to.dtype(c) != keys.parameters()[parameter].source_dtype)
      any = out[family] = true;
  }
  return any ? out : std::vector<bool>();
}

}  // namespace mckpt::impl
