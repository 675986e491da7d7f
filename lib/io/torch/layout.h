// Tensors in the form of torch.save: a zip archive with data.pkl (protocol 2), a state dict or a larger
// object with the tensors in it, and one storage for each tensor, stored at multiples of 64 bytes.
// torch.load(weights_only=True, mmap=True) reads it. Equal tensors give equal bytes.
//
//   NAME/data.pkl  .format_version  .storage_alignment  byteorder  data/0  data/1 ...  version  directory
//
// Names, types and sizes alone decide where everything is, so the bytes of tensors can be written in any
// order; the rest (the frame) needs their checksums and comes last.
#pragma once

#include <span>

#include "core/base/int.h"
#include "io/zip/zip_writer.h"

namespace mckpt::impl {

class PickleWriter;
struct TensorSpec;

// The folder in the archive, as torch names it: the file's name without its suffix.
std::string torch_archive_folder(std::string_view path);

// Why torch cannot save the tensor; "" if it can.
std::string torch_fault(const TensorSpec& tensor);

// A dict of the tensors by their names, the first of which is in the storage `first_key`. `ordered`: an
// OrderedDict, as the state dict of a module.
void write_tensors(PickleWriter& p, std::span<const TensorSpec> tensors, i64 first_key, bool ordered);

// The tensor as a pickle has it: rebuilt from the storage of that key, row-major.
void write_tensor(PickleWriter& p, const TensorSpec& tensor, i64 key);

// Where each record of the archive is, before anything is written. The plan asks for offsets, and at the
// end the writer for the frame.
class TorchLayout {
 public:
  // The bytes with which every record of the archive begins; they also follow the bytes of every tensor.
  static constexpr std::string_view kRecordMark = kZipRecordMark;

  // `folder` is the archive's own folder. Throws kNotHeld, with the first tensors that torch cannot save
  // (their type, a name that is not UTF-8), kOddName for a folder that is too long, kSizeOverflow.
  TorchLayout(std::string_view folder, std::span<const TensorSpec> tensors);
  // The layout of an object of the caller's: `pickle` is a whole one, in which write_tensor() wrote tensor i
  // with the key i.
  TorchLayout(std::string_view folder, std::span<const TensorSpec> tensors, std::string pickle);

  i64 file_bytes() const { return file_bytes_; }
  i64 data_offset(i64 tensor) const {
    return records_[first_tensor_ + static_cast<std::size_t>(tensor)].data_offset;
  }
  i64 data_bytes(i64 tensor) const {
    return records_[first_tensor_ + static_cast<std::size_t>(tensor)].bytes;
  }
  i64 tensor_count() const { return tensor_count_; }

  // Bytes for an offset of the file.
  struct Piece {
    i64 offset = 0;
    std::vector<u8> bytes;
  };
  // Everything but the tensors' bytes, whose checksums are given in the order of the tensors.
  std::vector<Piece> frame(std::span<const u32> crc32) const;

 private:
  struct Record : ZipRecord {
    std::string content;  // of a record that is part of the frame
  };
  void add_record(std::string_view name, std::string content, i64 bytes);

  std::string folder_;
  std::vector<Record> records_;
  std::size_t first_tensor_ = 0;
  i64 tensor_count_ = 0, at_ = 0, directory_bytes_ = 0, file_bytes_ = 0;
};

}  // namespace mckpt::impl
