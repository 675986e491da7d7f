#include "io/torch_layout.h"

#include <algorithm>

#include "core/shape.h"
#include "io/bytes.h"
#include "io/crc32.h"
#include "io/pickle_text.h"
#include "io/pickle_writer.h"

namespace mckpt {
namespace {

constexpr i64 kAlignment = 64;
constexpr i64 kWide = 0xffffffff;  // sizes and offsets from here on stand in a zip64 field
constexpr u16 kUtf8Name = 0x0800;
constexpr i64 kLocalBytes = 30, kExtraHead = 4, kWideSizesBytes = 16;
constexpr i64 kEndsBytes = 56 + 20 + 22;  // zip64 end, locator, end

std::vector<i64> row_major_strides(std::span<const i64> dims) {
  std::vector<i64> out(dims.size());
  i64 stride = 1;
  for (std::size_t d = dims.size(); d-- > 0;) {
    out[d] = stride;
    stride = checked_mul(stride, std::max<i64>(dims[d], 1), "the stride of a tensor");
  }
  return out;
}

// ('storage', class, key, 'cpu', count) as a persistent id.
void write_storage(PickleWriter& p, const DTypeInfo& type, bool typed, i64 key, i64 items) {
  p.op(Op::kMark);
  p.text("storage");
  if (typed)
    p.class_name("torch", cat(type.torch_storage, "Storage"));
  else
    p.class_name("torch.storage", "UntypedStorage");
  p.text(cat(key));
  p.text("cpu");
  p.integer(typed ? items : dtype_bytes(type.dtype, items));
  p.op(Op::kTuple);
  p.op(Op::kBinpersid);
}

void write_tensor(PickleWriter& p, const TensorSpec& t, i64 key) {
  const DTypeInfo& type = dtype_info(t.dtype);
  // Types without a storage class of their own, such as float8, carry the type behind the rest.
  bool typed = !type.torch_storage.empty() && t.dtype != DType::kC32;
  p.class_name("torch._utils", typed ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
  p.op(Op::kMark);
  write_storage(p, type, typed, key, Shape(t.dims).items());
  p.integer(0);
  p.tuple(t.dims);
  p.tuple(row_major_strides(t.dims));
  p.boolean(false);  // requires_grad
  p.class_name("collections", "OrderedDict");
  p.call_without_arguments();
  if (!typed) p.class_name("torch", type.name);
  p.op(Op::kTuple);
  p.op(Op::kReduce);
}

std::string write_state_dict(std::span<const TensorSpec> tensors) {
  PickleWriter p;
  p.op(Op::kEmptyDict);
  p.op(Op::kMark);
  for (std::size_t i = 0; i < tensors.size(); i++) {
    p.text(tensors[i].name);
    write_tensor(p, tensors[i], static_cast<i64>(i));
  }
  p.op(Op::kSetitems);
  return p.finish();
}

// Why torch cannot save the tensor; "" when it can.
std::string fault(const TensorSpec& t) {
  const DTypeInfo& type = dtype_info(t.dtype);
  // Torch 2.11 has the sub-byte integers as types, but cannot load what it saves of them.
  bool sub_byte = t.dtype >= DType::kU1 && t.dtype <= DType::kI7;
  if (!type.in_torch || sub_byte || type.kind == DTypeKind::kQuantized)
    return cat("torch cannot save tensors of type ", type.name);
  if (!is_python_utf8(t.name)) return "the name is not UTF-8";
  return "";
}

bool is_wide(i64 v) { return v >= kWide; }
u32 narrow(i64 v) { return is_wide(v) ? static_cast<u32>(kWide) : static_cast<u32>(v); }

}  // namespace

std::string torch_archive_folder(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  std::string_view stem = name.substr(0, name.rfind('.'));
  // Readers, this one included, take no folder that could be mistaken for a way out.
  bool odd = stem.find_first_not_of('.') == stem.npos || stem.find('\\') != stem.npos;
  return odd ? "archive" : std::string(stem);
}

TorchLayout::TorchLayout(std::string_view folder, std::span<const TensorSpec> tensors)
    : folder_(folder), tensor_count_(static_cast<i64>(tensors.size())) {
  std::vector<std::string> faults;
  for (const TensorSpec& t : tensors)
    if (std::string why = fault(t); !why.empty()) faults.push_back(not_held(t, why));
  throw_not_held(faults, "a .pt file");
  add_record("data.pkl", write_state_dict(tensors), -1);
  add_record(".format_version", "1", -1);
  add_record(".storage_alignment", cat(kAlignment), -1);
  add_record("byteorder", "little", -1);
  first_tensor_ = records_.size();
  for (std::size_t i = 0; i < tensors.size(); i++)
    add_record(cat("data/", i), "", dtype_bytes(tensors[i].dtype, Shape(tensors[i].dims).items()));
  add_record("version", "3\n", -1);
  std::vector<u8> directory;
  for (const Record& r : records_) append_entry(directory, r);
  directory_bytes_ = static_cast<i64>(directory.size());
  file_bytes_ = checked_add(at_, directory_bytes_ + kEndsBytes, "the size of the file");
}

// bytes -1: the content's own, part of the frame.
void TorchLayout::add_record(std::string_view name, std::string content, i64 bytes) {
  Record r{cat(folder_, "/", name), std::move(content), bytes, at_, 0, 0};
  if (bytes < 0)
    r.bytes = static_cast<i64>(r.content.size()),
    r.crc32 = crc32(0, {reinterpret_cast<const u8*>(r.content.data()), r.content.size()});
  if (r.name.size() > 0xffff)
    throw Error(Code::kOddName, "the name of the archive is too long").found(r.name.size());
  i64 head = at_ + kLocalBytes + static_cast<i64>(r.name.size()) + kExtraHead +
             (is_wide(r.bytes) ? kExtraHead + kWideSizesBytes : 0);
  r.data_offset = round_up(head, kAlignment, "the size of the file");
  at_ = checked_add(r.data_offset, r.bytes, "the size of the file");
  records_.push_back(std::move(r));
}

// With checksum and sizes, and padding of 'Z's in an extra field of type "FB" up to the data.
std::vector<u8> TorchLayout::local_header(const Record& r) {
  std::vector<u8> out(kRecordMark.begin(), kRecordMark.end());
  bool wide = is_wide(r.bytes);
  i64 extra = r.data_offset - r.header_offset - kLocalBytes - static_cast<i64>(r.name.size());
  append_le<u16>(out, wide ? 45 : 0);
  append_le<u16>(out, kUtf8Name);
  for (int zero = 0; zero < 3; zero++)
    append_le<u16>(out, 0);  // stored; no time, so that nothing depends on it
  append_le<u32>(out, r.crc32);
  append_le<u32>(out, narrow(r.bytes));
  append_le<u32>(out, narrow(r.bytes));
  append_le<u16>(out, static_cast<u16>(r.name.size()));
  append_le<u16>(out, static_cast<u16>(extra));
  out.insert(out.end(), r.name.begin(), r.name.end());
  if (wide) {
    append_le<u16>(out, 1), append_le<u16>(out, static_cast<u16>(kWideSizesBytes));
    append_le<u64>(out, static_cast<u64>(r.bytes)), append_le<u64>(out, static_cast<u64>(r.bytes));
  }
  i64 padding = r.data_offset - r.header_offset - static_cast<i64>(out.size()) - kExtraHead;
  append_le<u16>(out, 0x4246), append_le<u16>(out, static_cast<u16>(padding));
  out.insert(out.end(), static_cast<std::size_t>(padding), 'Z');
  return out;
}

void TorchLayout::append_entry(std::vector<u8>& out, const Record& r) {
  std::vector<u8> wide;
  if (is_wide(r.bytes))
    append_le<u64>(wide, static_cast<u64>(r.bytes)), append_le<u64>(wide, static_cast<u64>(r.bytes));
  if (is_wide(r.header_offset)) append_le<u64>(wide, static_cast<u64>(r.header_offset));
  append_le<u32>(out, 0x02014b50);
  append_le<u16>(out, 0), append_le<u16>(out, wide.empty() ? 0 : 45);
  append_le<u16>(out, kUtf8Name);
  for (int zero = 0; zero < 3; zero++) append_le<u16>(out, 0);
  append_le<u32>(out, r.crc32);
  append_le<u32>(out, narrow(r.bytes));
  append_le<u32>(out, narrow(r.bytes));
  append_le<u16>(out, static_cast<u16>(r.name.size()));
  append_le<u16>(out, static_cast<u16>(wide.empty() ? 0 : wide.size() + kExtraHead));
  for (int zero = 0; zero < 3; zero++) append_le<u16>(out, 0);  // no comment, first disk, no inner attributes
  append_le<u32>(out, 0);
  append_le<u32>(out, narrow(r.header_offset));
  out.insert(out.end(), r.name.begin(), r.name.end());
  if (!wide.empty()) append_le<u16>(out, 1), append_le<u16>(out, static_cast<u16>(wide.size()));
  out.insert(out.end(), wide.begin(), wide.end());
}

// The zip64 end record, which torch writes for archives of any size, its locator and the plain end record.
void TorchLayout::append_ends(std::vector<u8>& out) const {
  u64 count = records_.size();
  append_le<u32>(out, 0x06064b50);
  append_le<u64>(out, 44);
  append_le<u16>(out, 45), append_le<u16>(out, 45);
  append_le<u64>(out, 0);  // this disk, that of the directory
  append_le<u64>(out, count), append_le<u64>(out, count);
  append_le<u64>(out, static_cast<u64>(directory_bytes_)), append_le<u64>(out, static_cast<u64>(at_));
  append_le<u32>(out, 0x07064b50);
  append_le<u32>(out, 0);
  append_le<u64>(out, static_cast<u64>(at_ + directory_bytes_));
  append_le<u32>(out, 1);
  append_le<u32>(out, 0x06054b50);
  append_le<u32>(out, 0);
  u16 short_count = count >= 0xffff ? 0xffff : static_cast<u16>(count);
  append_le<u16>(out, short_count), append_le<u16>(out, short_count);
  append_le<u32>(out, narrow(directory_bytes_)), append_le<u32>(out, narrow(at_));
  append_le<u16>(out, 0);
}

std::vector<TorchLayout::Piece> TorchLayout::frame(std::span<const u32> crc32s) const {
  std::vector<Piece> pieces;
  Piece tail{at_, {}};
  for (std::size_t i = 0; i < records_.size(); i++) {
    Record r = records_[i];
    bool tensor = i >= first_tensor_ && i < first_tensor_ + static_cast<std::size_t>(tensor_count_);
    if (tensor) r.crc32 = crc32s[i - first_tensor_];
    Piece p{r.header_offset, local_header(r)};
    p.bytes.insert(p.bytes.end(), r.content.begin(), r.content.end());
    pieces.push_back(std::move(p));
    append_entry(tail.bytes, r);
  }
  append_ends(tail.bytes);
  pieces.push_back(std::move(tail));
  return pieces;
}

}  // namespace mckpt
