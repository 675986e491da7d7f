// The header of a safetensors file as columns, and every check that the format allows before a byte of data
// is read.
//
//   [8 bytes: N] [N bytes: {"name": {"dtype": "BF16", "shape": [4, 2], "data_offsets": [0, 16]}, ...}] [data]
//                ^ byte 8, header of N bytes, then the data from byte 8 + N
//
// Offsets count from the beginning of the data. Sorted by them, the tensors must cover the data exactly:
// each begins where the one before it ends. So a file has no place for hidden bytes, and a short file shows
// at once.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/int.h"
#include "core/items/dtype.h"
#include "io/store/finding.h"
#include "io/store/findings.h"

namespace mckpt::impl {

class ByteSource;
class HeaderJson;

// Made of one file; keeps its text, into which the names point. 100,000 entries take milliseconds.
class SafetensorsTable {
 public:
  static constexpr i64 kMaxHeaderBytes = 100'000'000;

  SafetensorsTable();  // of no file: no tensors
  // Reads and checks the header of the file. Throws kBadHeader, kBadJson, kBadExtent, kNotContiguous,
  // kCutShort, kUnknownDType, kBadShape, kSizeOverflow.
  explicit SafetensorsTable(const ByteSource& file);
  SafetensorsTable(SafetensorsTable&&) noexcept;
  SafetensorsTable& operator=(SafetensorsTable&&) noexcept;
  ~SafetensorsTable();

  // Tensors in the order of their bytes. F4 is shown as torch has it: pairs, with half the last dimension.
  i64 size() const { return static_cast<i64>(names_.size()); }
  std::string_view name(i64 tensor) const { return names_[index(tensor)]; }
  DType dtype(i64 tensor) const { return dtypes_[index(tensor)]; }
  std::span<const i64> dims(i64 tensor) const;
  i64 offset(i64 tensor) const { return in_file(begins_[index(tensor)]); }
  i64 bytes(i64 tensor) const { return ends_[index(tensor)] - begins_[index(tensor)]; }

  const std::vector<std::pair<std::string, std::string>>& metadata() const { return metadata_; }
  // Oddities that do no harm: control characters in a name, unknown fields. They name no file.
  const std::vector<Finding>& findings() const { return findings_; }

 private:
  std::size_t index(i64 tensor) const { return order_[tensor]; }
  void read_header(const ByteSource& file);
  void reserve_entries(std::string_view text);
  void read_entries();
  void read_metadata();
  void read_entry(std::string_view name);
  void read_dtype(std::string_view text);
  void read_shape();
  void read_offsets();
  void check_extent();
  void fold_float4();
  void sort_by_offset();
  // The place in the file of an offset of the header, which may be as large as a number can be.
  i64 in_file(i64 offset) const {
    return data_begin_ + std::min(offset, std::numeric_limits<i64>::max() - data_begin_);
  }
  void check_contiguous(i64 file_bytes) const;
  [[noreturn]] void throw_cut_short(i64 file_bytes) const;

  std::unique_ptr<u8[]> text_;
  std::unique_ptr<HeaderJson> json_;  // holds the names that were escaped
  i64 data_begin_ = 0;
  std::vector<u32> order_;  // by offset; the columns are in the order of the header
  std::vector<std::string_view> names_;
  std::vector<DType> dtypes_;
  std::vector<i64> begins_, ends_;  // from the beginning of the data
  std::vector<u32> dims_begin_;     // where the dimensions of each begin in dims_; one more at the end
  std::vector<i64> dims_;
  std::string_view last_dtype_name_;
  DType last_dtype_ = DType::kU8;
  std::vector<std::pair<std::string, std::string>> metadata_;
  Findings odd_;  // while it is read
  std::vector<Finding> findings_;
};

}  // namespace mckpt::impl
