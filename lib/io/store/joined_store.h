// JoinedStore: two stores read as one, so that one copy can read from both: a checkpoint, and the states of
// its optimizer that the ranks saved in files of their own. Tensors and files of the second are numbered
// after the tensors and files of the first:
//
//   first  /data/run/iter_10   tensors 0..99    files 0..3        joined: root /data/run
//   second /data/run/states    tensors 0..49    files 0..1        tensors 100..149, files 4..5
//
// The root is the innermost folder that contains both, and the paths of files are relative to it.
#pragma once

#include "io/store/store.h"

namespace mckpt::impl {

// Reads through both stores; has no data of its own but the list of files.
class JoinedStore final : public Store {
 public:
  // Both outlive this. Their findings, objects and checks are not taken over. Throws kNotFound if the folder
  // of one does not exist any more.
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
