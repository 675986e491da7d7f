// Tensors of a store under other names: all of them, or some; and tensors in pieces seen as one.
//
//   source   base_model.model.w [6, 4]: rows 0-2 in file 0, rows 3-5 in file 1
//   view     w [6, 4]: rows 0-5, in bytes that are read from both files when they are wanted
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/store/store_files.h"
#include "io/store/store_view.h"

namespace mckpt::impl {

// Several views may share a source, which lives as long as any of them.
class RenamedStore final : public StoreView {
 public:
  struct Tensor {
    std::string name;
    i64 tensor;          // of the source
    bool whole = false;  // one chunk, however the source has it
  };
  // `objects`: whether the view has the source's objects and findings too.
  RenamedStore(std::shared_ptr<const Store> source, std::vector<Tensor> tensors, bool objects);

  i64 tensor_count() const override { return std::ssize(tensors_); }
  std::string_view name(i64 t) const override { return tensors_[t].name; }
  DType dtype(i64 t) const override { return source().dtype(of(t)); }
  std::span<const i64> dims(i64 t) const override { return source().dims(of(t)); }
  i64 chunk_count(i64 t) const override { return tensors_[t].whole ? 1 : source().chunk_count(of(t)); }
  Chunk chunk(i64 t, i64 index) const override;
  ChunkData resolve(i64 t, i64 index) const override;
  void each_checksum(const std::function<void(const Checksum&)>& visit) const override;
  // The checks of the source name its tensors.
  std::optional<std::vector<Finding>> check(int) const override { return std::nullopt; }

 private:
  i64 of(i64 t) const { return tensors_[t].tensor; }

  std::vector<Tensor> tensors_;
  std::vector<i64> own_number_;  // by tensor of the source; -1: it is not in the view
  StoreFiles files_;
};

}  // namespace mckpt::impl
