// A state dict in the form of torch.save: a zip archive with data.pkl (protocol 2) and one storage a tensor,
// stored at multiples of 64 bytes. torch.load(weights_only=True, mmap=True) takes it. The same tensors give
// the same bytes.
//
// Where everything lies is fixed by names, types and sizes alone, so that the bytes of tensors can be written
// in any order; the rest (the frame) needs their checksums and comes last.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "core/int.h"

namespace mckpt {

struct TorchTensorSpec {
  std::string_view name;
  DType dtype = DType::kF32;
  std::span<const i64> dims;
};

class TorchLayout {
 public:
  // `folder` is the archive's own folder; torch takes the stem of the file's name. Throws kUnsupportedTensor
  // for types that torch cannot save, kOddName for names that are not UTF-8, kSizeOverflow.
  TorchLayout(std::string_view folder, std::span<const TorchTensorSpec> tensors);

  i64 file_bytes() const { return file_bytes_; }
  i64 data_offset(i64 tensor) const {
    return records_[first_tensor_ + static_cast<std::size_t>(tensor)].data_offset;
  }
  i64 data_bytes(i64 tensor) const {
    return records_[first_tensor_ + static_cast<std::size_t>(tensor)].bytes;
  }
  i64 tensor_count() const { return tensor_count_; }

  struct Piece {
    i64 offset = 0;
    std::vector<u8> bytes;
  };
  // Everything but the tensors' bytes, whose checksums are given in their order.
  std::vector<Piece> frame(std::span<const u32> crc32) const;

 private:
  struct Record {
    std::string name;
    std::string content;  // of a record that is part of the frame
    i64 bytes = 0;
    i64 header_offset = 0, data_offset = 0;
    u32 crc32 = 0;
  };
  void add_record(std::string_view name, std::string content, i64 bytes);
  static std::vector<u8> local_header(const Record& r);
  static void append_entry(std::vector<u8>& out, const Record& r);
  void append_ends(std::vector<u8>& out) const;

  std::string folder_;
  std::vector<Record> records_;
  std::size_t first_tensor_ = 0;
  i64 tensor_count_ = 0, at_ = 0, directory_bytes_ = 0, file_bytes_ = 0;
};

}  // namespace mckpt
