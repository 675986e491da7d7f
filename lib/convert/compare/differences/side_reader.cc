// Computed values are one chunk, in row-major order.
#include "convert/compare/differences/side_reader.h"

#include "io/file/file.h"
#include "io/store/unrounded.h"

namespace mckpt::impl {

SideReader::SideReader(const Store& store) : store_(store), files_(store), reader_(store, files_) {}

DType SideReader::type(i64 tensor, DType other) const {
  const UnroundedValues* values = store_.unrounded();
  const DType own = store_.dtype(tensor);
  const bool unrounded = values && other != own && store_.chunk_count(tensor) == 1 &&
                         values->is_rounded(tensor) && values->resolve_unrounded(tensor, 0).strides.empty();
  return unrounded ? DType::kF32 : own;
}

void SideReader::read(i64 tensor, DType type, i64 begin, i64 end, const TensorReader::Take& take) {
  if (type == store_.dtype(tensor)) return reader_.read(tensor, begin, end, take);
  const ChunkData data = store_.unrounded()->resolve_unrounded(tensor, 0);
  bytes_.resize(static_cast<std::size_t>((end - begin) * 4));
  data.unpacked->read(data.offset + begin * 4, bytes_);
  take(bytes_, begin * 4);
}

}  // namespace mckpt::impl
