// One record of a .distcp file: the torch.save archive of one chunk of a tensor, or of one object. Its
// pickle says type, shape and strides, its directory where the storage's bytes are:
//
//   offset in the file --> [ data.pkl | data/0: the storage ........ | version | directory ]
//                                       ^ DcpItem::offset, from the beginning of the record
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/base/int.h"
#include "io/file/file.h"

namespace mckpt::impl {

enum class DType : u8;
class Pickle;

// The range of a file that is one record. The description of an archive is at its two ends, so the first
// and last kEnd bytes are read at once (all of a record of at most kWhole bytes), and the data between them
// only on demand.
class RecordSource final : public ByteSource {
 public:
  // pre: the file outlives this. Throws kReadFailed for a range that is not inside it.
  RecordSource(const ByteSource& file, i64 offset, i64 bytes);

 private:
  static constexpr i64 kEnd = 2048, kWhole = 8192;
  void read_inside(i64 offset, std::span<u8> to) const override;

  const ByteSource& file_;
  i64 offset_;
  std::vector<u8> head_, tail_;
};

// Where the elements of a chunk are, after its archive was opened. Made by read_dcp_item() for
// DcpStore::resolve().
struct DcpItem {
  i64 offset = 0;            // of the first element, from the beginning of the record
  std::vector<i64> strides;  // in elements; empty: row-major
  bool big_endian = false;
  bool carries_values =
      false;  // attributes or a quantizer are beside the elements (io/torch/table/attached.h)
  // The CRC-32 of the storage's bytes and where they are; nothing if they are compressed, or the archive
  // has no sums.
  struct Sum {
    i64 offset, bytes;
    u32 crc32;
  };
  std::optional<Sum> sum;
  // The storage's bytes, if they are compressed in the record; `offset` then counts from their beginning.
  std::shared_ptr<const ByteSource> unpacked;
};

// Opens the archive and checks that it is one tensor of that type and these sizes. Throws kItemMismatch
// when not, and what reading archives, pickles and views throws.
DcpItem read_dcp_item(const ByteSource& record, DType dtype, std::span<const i64> sizes);

// The pickle of an object's archive. Throws kItemMismatch and what reading archives and pickles throws.
std::shared_ptr<const Pickle> read_dcp_object(const ByteSource& record);

// Calls visit(offset in the record, bytes, CRC-32, name) for every record of the archive; none for other
// forms, which keep no checksums.
void each_item_checksum(
    const ByteSource& record,
    const std::function<void(i64 offset, i64 bytes, u32 crc32, std::string_view name)>& visit);

}  // namespace mckpt::impl
