// Lays out the archive of a state dict, and writes the pickle in it.
#include "io/torch/layout.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/items/dtype.h"
#include "core/items/shape.h"
#include "io/file/crc32.h"
#include "io/pickle/text.h"
#include "io/pickle/write/writer.h"
#include "io/store/tensor_spec.h"

namespace mckpt::impl {
namespace {

// torch's strides of a contiguous tensor: a dimension of 0 counts as 1.
std::vector<i64> row_major_strides(std::span<const i64> dims) {
  std::vector<i64> out(dims.size());
  i64 stride = 1;
  for (std::size_t d = dims.size(); d-- > 0;) {
    out[d] = stride;
    stride = checked_mul(stride, std::max<i64>(dims[d], 1), "the stride of a tensor");
  }
  return out;
}

// ('storage', class, key, 'cpu', count) as a persistent id; for an untyped storage the count is in bytes.
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

}  // namespace

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

void write_tensors(PickleWriter& p, std::span<const TensorSpec> tensors, i64 first_key, bool ordered) {
  if (ordered) {
    p.class_name("collections", "OrderedDict");
    p.call_without_arguments();
  } else {
    p.op(Op::kEmptyDict);
  }
  p.op(Op::kMark);
  for (std::size_t i = 0; i < tensors.size(); i++) {
    p.text(tensors[i].name);
    write_tensor(p, tensors[i], first_key + static_cast<i64>(i));
  }
  p.op(Op::kSetitems);
}

namespace {

std::string write_state_dict(std::span<const TensorSpec> tensors) {
  PickleWriter p;
  write_tensors(p, tensors, 0, false);
  return p.finish();
}

}  // namespace

std::string torch_fault(const TensorSpec& t) {
  const DTypeInfo& type = dtype_info(t.dtype);
  // Torch 2.11 has the sub-byte integers as types, but cannot load what it saves of them.
  bool sub_byte = t.dtype >= DType::kU1 && t.dtype <= DType::kI7;
  if (type.kind == DTypeKind::kQuantized)
    return cat("a tensor of ", type.name, " has a scheme of scales, which mckpt does not write");
  if (!type.in_torch || sub_byte) return cat("torch cannot save tensors of type ", type.name);
  if (!is_python_utf8(t.name)) return "the name is not UTF-8";
  return "";
}

// Readers, this one included, refuse a folder that could lead out of the archive; then it is called
// "archive".
std::string torch_archive_folder(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  std::string_view stem = name.substr(0, name.rfind('.'));
  // Readers, this one included, take no folder that could be mistaken for a way out.
  bool odd = stem.find_first_not_of('.') == stem.npos || stem.find('\\') != stem.npos;
  return odd ? "archive" : std::string(stem);
}

TorchLayout::TorchLayout(std::string_view folder, std::span<const TensorSpec> tensors)
    : TorchLayout(folder, tensors, write_state_dict(tensors)) {}

TorchLayout::TorchLayout(std::string_view folder, std::span<const TensorSpec> tensors, std::string pickle)
    : folder_(folder), tensor_count_(static_cast<i64>(tensors.size())) {
  std::vector<std::string> faults;
  for (const TensorSpec& t : tensors)
    if (std::string why = torch_fault(t); !why.empty()) faults.push_back(not_held(t, why));
  throw_not_held(faults, "a .pt file");
  add_record("data.pkl", std::move(pickle), -1);
  add_record(".format_version", "1", -1);
  add_record(".storage_alignment", cat(kZipAlignment), -1);
  add_record("byteorder", "little", -1);
  first_tensor_ = records_.size();
  for (std::size_t i = 0; i < tensors.size(); i++)
    add_record(cat("data/", i), "", dtype_bytes(tensors[i].dtype, Shape(tensors[i].dims).items()));
  add_record("version", "3\n", -1);
  std::vector<u8> directory;
  for (const Record& r : records_) append_zip_entry(directory, r);
  directory_bytes_ = static_cast<i64>(directory.size());
  file_bytes_ = checked_add(at_, directory_bytes_ + kZipEndsBytes, "the size of the file");
}

// bytes -1: the content's own, part of the frame.
void TorchLayout::add_record(std::string_view name, std::string content, i64 bytes) {
  Record r{{cat(folder_, "/", name), bytes, at_, 0, 0, false}, std::move(content)};
  if (bytes < 0)
    r.bytes = static_cast<i64>(r.content.size()),
    r.crc32 = crc32(0, {reinterpret_cast<const u8*>(r.content.data()), r.content.size()});
  r.data_offset = zip_data_offset(r);
  at_ = checked_add(r.data_offset, r.bytes, "the size of the file");
  records_.push_back(std::move(r));
}

std::vector<TorchLayout::Piece> TorchLayout::frame(std::span<const u32> crc32s) const {
  std::vector<Piece> pieces;
  Piece tail{at_, {}};
  for (std::size_t i = 0; i < records_.size(); i++) {
    ZipRecord r = records_[i];
    bool tensor = i >= first_tensor_ && i < first_tensor_ + static_cast<std::size_t>(tensor_count_);
    if (tensor) r.crc32 = crc32s[i - first_tensor_];
    Piece p{r.header_offset, {}};
    append_zip_header(p.bytes, r);
    p.bytes.insert(p.bytes.end(), records_[i].content.begin(), records_[i].content.end());
    pieces.push_back(std::move(p));
    append_zip_entry(tail.bytes, r);
  }
  append_zip_ends(tail.bytes, std::ssize(records_), at_, directory_bytes_);
  pieces.push_back(std::move(tail));
  return pieces;
}

}  // namespace mckpt::impl
