// TensorCopy: a copy job that writes whole tensors of a store, row-major and little-endian, bit for bit
// unless another type is wanted, to places that the caller chose: the conversion of one file format into
// another (.pt to safetensors and back).
//
//   tensor in one stretch of a source file     copied from the file
//   any other tensor                           read through a TensorReader: at strides (a transposed view in
//                                              a .pt file), in pieces, big-endian, or compressed
//
// One task for each tensor.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>

#include "io/copy/job.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
#include "io/values/tensor_reader.h"

namespace mckpt::impl {

// The source regions are fixed at construction; readers for tensors that are not in one stretch are made when
// threads need them, at most one for each thread.
class TensorCopy final : public CopyJob {
 public:
  // Where a tensor goes.
  struct Place {
    i64 tensor = 0;
    i32 file = 0;               // of the output
    i64 offset = 0;             // in it
    std::optional<DType> as{};  // the type there; none: the tensor's own
  };

  // `behind`: the bytes that follow every tensor in the output, equal for all of them; only with such bytes
  // is the CRC-32 of each tensor taken. Throws what Store::resolve() throws, because all chunks are looked
  // at; kBadCast. The store and `behind` outlive this.
  TensorCopy(const Store& store, std::vector<Place> places, std::string_view behind = {});
  ~TensorCopy() override;

  // A tensor with strides is gathered in half of a thread's memory; the other half is the copy engine's.
  void prepare(int threads, i64 memory_bytes) const override;
  i64 task_count() const override { return static_cast<i64>(places_.size()); }
  CopyTask task(i64 index) const override;
  i64 task_bytes(i64 index) const override;
  i64 task_work(i64 index) const override {
    return std::max(task_bytes(index), read_[static_cast<std::size_t>(index)]);
  }
  i32 source_tensor(const Region& region) const override {
    return static_cast<i32>(places_[region.tensor].tensor);
  }
  i32 target_tensor(const Region& region) const override { return source_tensor(region); }
  std::string tensor_of(const Region& region) const override {
    return std::string(store_.name(source_tensor(region)));
  }
  const ByteSource& source(i32 file) const override;
  Frame frame(const Region&) const override { return {0, static_cast<i64>(behind_.size())}; }
  void write_tail(const Region& region, u32 crc32, std::span<u8> to) const override;

  // The open files of the source.
  const StoreFiles& files() const { return files_.files(); }
  // The CRC-32 of each tensor's data, by place; valid after the copy.
  std::span<const u32> crc32s() const { return crc32s_; }

 private:
  class TensorBytes;
  std::unique_ptr<TensorReader> take_reader(i64 tensor) const;
  DType read_type(const Place& place) const;
  ItemCast cast_of(const Place& place) const;

  const Store& store_;
  StoreBytes files_;
  std::vector<Place> places_;
  std::string_view behind_;
  mutable i64 strided_bytes_ = TensorReader::kStridedBytes;  // of a reader, of which each thread may have one
  std::vector<Region> sources_;                              // by place
  std::vector<i64> read_;  // by place: what is read to compute the tensor; 0: no more than it has
  std::vector<std::shared_ptr<const ByteSource>> combined_;  // numbered after the store's files
  mutable std::vector<u32> crc32s_;  // each is written by the thread that ends its tensor

  mutable std::mutex mutex_;
  // Idle readers, each with the tensor that it read last: the next read of that tensor takes the same reader,
  // which may still have the bytes.
  mutable std::vector<std::pair<i64, std::unique_ptr<TensorReader>>> idle_;
};

}  // namespace mckpt::impl
