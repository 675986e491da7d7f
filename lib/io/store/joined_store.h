// JoinedStore: two stores side by side, read as one: the tensors and files of the first, then those of the
// second, so that one copy can draw on both. Its root is the folder that both lie in.
#pragma once

#include "io/store/store.h"

namespace mckpt::impl {

class JoinedStore final : public Store {
 public:
  // Both outlive this. Findings and objects stay theirs. Throws kNotFound.
  JoinedStore(const Store& first, const Store& second);

  i64 tensor_count() const override { return first_.tensor_count() + second_.tensor_count(); }
  std::string_view name(i64 t) const override { return of(t).name(in(t)); }
  DType dtype(i64 t) const override { return of(t).dtype(in(t)); }
  std::span<const i64> dims(i64 t) const override { return of(t).dims(in(t)); }
  i64 chunk_count(i64 t) const override { return of(t).chunk_count(in(t)); }
  Chunk chunk(i64 t, i64 index) const override;
  ChunkData resolve(i64 t, i64 index) const override;

 private:
  bool second(i64 t) const { return t >= first_.tensor_count(); }
  const Store& of(i64 t) const { return second(t) ? second_ : first_; }
  i64 in(i64 t) const { return second(t) ? t - first_.tensor_count() : t; }
  i32 shift(i64 t) const { return second(t) ? static_cast<i32>(first_.files().size()) : 0; }

  const Store& first_;
  const Store& second_;
};

}  // namespace mckpt::impl
