// Writing one item of a .distcp file: a torch.save archive of its own, as torch.distributed.checkpoint
// appends them one after the other. A tensor's archive is a frame around its bytes, fixed by shape and type
// alone; its size is a multiple of 64 bytes, so that the data of every item are aligned in the file.
//
//   data.pkl  byteorder  [data/0: the tensor]  version  directory
//   '------ head -------'                      '------ tail ------'
//    type and sizes fix it                      needs the CRC-32 of the data
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/base/int.h"
#include "io/zip/zip_writer.h"

namespace mckpt::impl {

enum class DType : u8;
class TorchZip;

// The bytes around a chunk's data. DcpLayout keeps one for each type and size; the engine writes head, data
// and tail of each chunk.
class DcpTensorFrame {
 public:
  // `dims` are the chunk's. Throws kNotHeld for a type that torch cannot read, kSizeOverflow.
  DcpTensorFrame(DType dtype, std::span<const i64> dims);

  std::span<const u8> head() const { return head_; }
  i64 tail_bytes() const { return tail_bytes_; }
  i64 data_bytes() const { return data_.bytes; }
  // The size of the whole record: head, data, tail.
  i64 record_bytes() const { return std::ssize(head_) + data_.bytes + tail_bytes_; }
  // The tail of a record whose data have that CRC-32. pre: `to` has tail_bytes(). The sum is at byte
  // kCrc32At of it, for those who fill it in later.
  static constexpr i64 kCrc32At = 4;
  void write_tail(u32 crc32, std::span<u8> to) const;

 private:
  std::vector<u8> tail(u32 crc32) const;

  std::vector<u8> head_, entries_;  // entries: of the records in the head
  ZipRecord data_, version_;
  i64 tail_bytes_ = 0;
};

// The whole archive around an object that is pickled already.
std::string dcp_object_record(std::string_view pickle);

// The archive with another pickle, and all its other records: the tensors of the object, the byte order.
// Throws kUnsupportedTorchFile for one of more than 64 MiB, and what reading the archive throws.
std::string record_with_pickle(const TorchZip& archive, std::string_view pickle);

}  // namespace mckpt::impl
