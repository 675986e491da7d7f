// One item of a .distcp file: a torch.save archive of its own, as torch.distributed.checkpoint appends them
// one after the other. A tensor's archive is a frame around its bytes that shape and type fix; its size is a
// multiple of 64 bytes, so that the data of every item are aligned in the file.
//
//   data.pkl  byteorder  [data/0: the tensor]  version  directory
//   '------ head -------'                      '------ tail ------'
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/base/int.h"
#include "io/zip/zip_writer.h"

namespace mckpt::impl {

enum class DType : u8;

class DcpTensorFrame {
 public:
  // Throws kNotHeld, kSizeOverflow.
  DcpTensorFrame(DType dtype, std::span<const i64> dims);

  std::span<const u8> head() const { return head_; }
  i64 tail_bytes() const { return tail_bytes_; }
  i64 data_bytes() const { return data_.bytes; }
  i64 record_bytes() const { return std::ssize(head_) + data_.bytes + tail_bytes_; }
  // pre: `to` has tail_bytes(). The sum stands at byte kCrc32At of it.
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

}  // namespace mckpt::impl
