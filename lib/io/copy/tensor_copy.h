// TensorCopy: a copy job that writes tensors of a store, row-major and little-endian, to places of their own,
// bit for bit. Tensors that are stored so in one stretch of a file are copied from there; the others (at
// strides, in pieces, or of the other byte order) are read through a TensorReader.
#pragma once

#include <memory>
#include <mutex>

#include "io/copy/job.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
#include "io/values/tensor_reader.h"

namespace mckpt::impl {

class TensorCopy final : public CopyJob {
 public:
  struct Place {
    i64 tensor = 0;
    i32 file = 0;    // of the output
    i64 offset = 0;  // in it
  };

  // `behind`: the bytes that follow every tensor in the output, if they are the same behind each; with them
  // the CRC-32 of what is written is taken. `strided_bytes`: as a TensorReader takes it, one for each thread.
  // Throws what Store::resolve() does: all chunks are looked at. The store outlives it.
  TensorCopy(const Store& store, std::vector<Place> places, std::string_view behind = {},
             i64 strided_bytes = TensorReader::kStridedBytes);
  ~TensorCopy() override;

  i64 task_count() const override { return static_cast<i64>(places_.size()); }
  CopyTask task(i64 index) const override;
  i64 task_bytes(i64 index) const override;
  i32 source_tensor(const Region& region) const override {
    return static_cast<i32>(places_[static_cast<std::size_t>(region.tensor)].tensor);
  }
  i32 target_tensor(const Region& region) const override { return source_tensor(region); }
  std::string tensor_of(const Region& region) const override {
    return std::string(store_.name(source_tensor(region)));
  }
  const ByteSource& source(i32 file) const override;
  Frame frame(const Region&) const override { return {0, static_cast<i64>(behind_.size())}; }
  void write_tail(const Region& region, u32 crc32, std::span<u8> to) const override;

  // The source's, to be asked afterwards whether they are unchanged.
  const StoreFiles& files() const { return files_.files(); }
  // By place, once the copy is done.
  std::span<const u32> crc32s() const { return crc32s_; }

 private:
  class TensorBytes;
  std::unique_ptr<TensorReader> take_reader(i64 tensor) const;

  const Store& store_;
  StoreBytes files_;
  std::vector<Place> places_;
  std::string_view behind_;
  i64 strided_bytes_;
  std::vector<Region> sources_;                              // by place
  std::vector<std::unique_ptr<const ByteSource>> combined_;  // tensors; they count on from the store's files
  mutable std::vector<u32> crc32s_;  // each is written by the thread that ends its tensor

  mutable std::mutex mutex_;
  // Readers that are not at work, with what they read last: whoever goes on with it takes the same.
  mutable std::vector<std::pair<i64, std::unique_ptr<TensorReader>>> idle_;
};

}  // namespace mckpt::impl
