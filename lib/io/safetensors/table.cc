// Reads the header of a safetensors file and checks it.
#include "io/safetensors/table.h"

#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "io/file/file.h"
#include "io/safetensors/header_json.h"

namespace mckpt::impl {
namespace {

constexpr i64 kLengthBytes = 8;
// Limits far above real files: the format needs a depth of 3, and __metadata__ has a handful of entries.
// They bound the memory that a header made by hand can ask for.
constexpr int kMaxHeaderDepth = 8;  // the format needs 3
// An entry of few bytes costs many times as much memory; real files have a handful.
constexpr i64 kMostMetadata = 1 << 16;
constexpr int kMostUnknownFields = 1 << 10;

u64 little_endian(std::span<const u8> bytes) {
  u64 v = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) v = v << 8 | bytes[i];
  return v;
}

// The length of the header, once it is known to be inside the file.
i64 header_length(const ByteSource& file) {
  if (file.size() < kLengthBytes)
    throw Error(Code::kBadHeader, "the file is too short for the length of a safetensors header")
        .expected(cat("at least ", kLengthBytes, " bytes"))
        .found(cat(file.size(), " bytes"));
  u8 head[kLengthBytes];
  file.read(0, head);
  u64 length = little_endian(head);
  if (length > static_cast<u64>(SafetensorsTable::kMaxHeaderBytes))
    throw Error(Code::kBadHeader,
                "the header length is too large (over the limit): this is not a safetensors file")
        .offset(0)
        .expected(cat("at most ", SafetensorsTable::kMaxHeaderBytes, " bytes"))
        .found(cat(length, " bytes"));
  if (length == 0) throw Error(Code::kBadHeader, "the header length is 0: there is no JSON header").offset(0);
  if (static_cast<i64>(length) > file.size() - kLengthBytes)
    throw Error(Code::kCutShort,
                "the file is truncated inside its header (header length beyond the end of the file)")
        .offset(0)
        .expected(cat("a header of ", length, " bytes"))
        .found(cat("a file of ", file.size(), " bytes"));
  return static_cast<i64>(length);
}

bool has_control_byte(std::string_view name) {
  return std::any_of(name.begin(), name.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

}  // namespace

SafetensorsTable::SafetensorsTable() = default;
SafetensorsTable::SafetensorsTable(SafetensorsTable&&) noexcept = default;
SafetensorsTable& SafetensorsTable::operator=(SafetensorsTable&&) noexcept = default;
SafetensorsTable::~SafetensorsTable() = default;

SafetensorsTable::SafetensorsTable(const ByteSource& file) {
  read_header(file);
  sort_by_offset();
  check_contiguous(file.size());
}

std::span<const i64> SafetensorsTable::dims(i64 tensor) const {
  std::size_t i = index(tensor);
  return std::span(dims_).subspan(dims_begin_[i], dims_begin_[i + 1] - dims_begin_[i]);
}

// pre: the file is as long as its size says; offsets in errors count from the beginning of the file.
void SafetensorsTable::read_header(const ByteSource& file) {
  i64 length = header_length(file);
  text_ = std::make_unique_for_overwrite<u8[]>(static_cast<std::size_t>(length));
  std::span<u8> text(text_.get(), static_cast<std::size_t>(length));
  file.read(kLengthBytes, text);
  data_begin_ = kLengthBytes + length;
  try {
    json_ = std::make_unique<HeaderJson>(
        std::string_view(reinterpret_cast<const char*>(text.data()), text.size()), kLengthBytes,
        kMaxHeaderDepth);
    reserve_entries({reinterpret_cast<const char*>(text.data()), text.size()});
    read_entries();
  } catch (Error& e) {
    if (e.code() == Code::kBadJson && e.tensor().empty()) e.prefix("JSON of the safetensors header: ");
    throw;
  }
}

// Columns that grow leave their old halves behind as memory, so their size is estimated: an entry has a
// brace, and at least forty bytes.
void SafetensorsTable::reserve_entries(std::string_view text) {
  auto count = static_cast<std::size_t>(std::count(text.begin(), text.end(), '{'));
  count = std::min(count, text.size() / 40);
  names_.reserve(count), dtypes_.reserve(count), begins_.reserve(count), ends_.reserve(count);
  dims_begin_.reserve(count + 1);
}

// All entries, in the order of the text.
void SafetensorsTable::read_entries() {
  dims_begin_.push_back(0);
  std::string_view name;
  for (json_->begin_object(); json_->next_key(name);) {
    if (name == "__metadata__") {
      read_metadata();
      continue;
    }
    names_.push_back(name);
    read_entry(name);
    if (has_control_byte(name))
      odd_.add({.code = Code::kOddName,
                .tensor = std::string(name),
                .message = "the tensor's name contains control characters",
                .warning = true});
  }
  json_->end();
  findings_ = odd_.take();
}

// Strings only, as the format says. The safetensors library takes null for no metadata.
void SafetensorsTable::read_metadata() {
  if (json_->peek() == JsonType::kNull) return json_->null();
  if (json_->peek() != JsonType::kObject) json_->fail("__metadata__ is not an object of strings");
  std::string_view key;
  for (json_->begin_object(); json_->next_key(key);) {
    if (json_->peek() != JsonType::kString)
      json_->fail(cat("__metadata__: the value of '", escaped(key), "' is not a string"));
    if (std::ssize(metadata_) == kMostMetadata)
      json_->fail(cat("__metadata__ has more than ", kMostMetadata, " entries"));
    metadata_.emplace_back(key, json_->string());
  }
}

// One tensor: exactly the fields dtype, shape and data_offsets, in any order. Unknown fields are warnings.
void SafetensorsTable::read_entry(std::string_view name) {
  enum Field : unsigned { kDType = 1, kShape = 2, kOffsets = 4 };
  unsigned seen = 0;
  int unknown = 0;
  std::string_view key = "entry";
  try {
    for (json_->begin_object(); json_->next_key(key);) {
      if (key == "dtype") {
        read_dtype(json_->string());
        seen |= kDType;
      } else if (key == "shape") {
        read_shape();
        seen |= kShape;
      } else if (key == "data_offsets") {
        read_offsets();
        seen |= kOffsets;
      } else {
        json_->skip();
        if (++unknown > kMostUnknownFields) json_->fail("the header entry has too many unknown fields");
        odd_.add({.code = Code::kUnknownField,
                  .tensor = std::string(name),
                  .message = cat("the header entry has an unknown field '", escaped(key), "'"),
                  .offset = json_->offset(),
                  .warning = true});
      }
    }
    for (auto [bit, field] : {std::pair{kDType, "dtype"}, {kShape, "shape"}, {kOffsets, "data_offsets"}})
      if (!(seen & bit))
        throw Error(Code::kBadHeader, cat("the header entry has no '", field, "' (missing)"))
            .offset(json_->offset());
    check_extent();
  } catch (Error& e) {
    if (e.code() == Code::kBadJson) e.prefix(cat("JSON of the safetensors header, ", escaped(key), ": "));
    if (e.code() == Code::kUnknownDType) e.prefix("dtype: ");
    if (e.code() == Code::kSizeOverflow || e.code() == Code::kBadShape) e.prefix("shape: ");
    e.default_tensor(name);
    throw;
  }
}

void SafetensorsTable::read_dtype(std::string_view text) {
  // Neighbours mostly share their type, and finding a name among fifty costs more than the rest of the entry.
  if (text != last_dtype_name_ || dtypes_.empty()) {
    last_dtype_ = dtype_from_safetensors(text);
    last_dtype_name_ = text;
  }
  dtypes_.push_back(last_dtype_);
}

void SafetensorsTable::read_shape() {
  std::size_t begin = dims_.size();
  for (json_->begin_array(); json_->next_item();) {
    if (std::ssize(dims_) - static_cast<i64>(begin) == Shape::kMaxRank)
      throw Error(Code::kBadShape, "too many dimensions")
          .offset(json_->offset())
          .expected(cat("at most ", Shape::kMaxRank));
    dims_.push_back(json_->integer());
  }
  dims_begin_.push_back(static_cast<u32>(dims_.size()));
}

// Throws kBadExtent for an end before its begin.
void SafetensorsTable::read_offsets() {
  i64 pair[2];
  std::size_t count = 0;
  for (json_->begin_array(); json_->next_item(); count++) {
    if (count == 2) json_->fail("two offsets are expected, not more");
    pair[count] = json_->integer();
  }
  if (count != 2) json_->fail("two offsets are expected");
  if (pair[0] < 0 || pair[1] < pair[0])
    throw Error(Code::kBadExtent, "data_offsets are not a range")
        .offset(json_->offset())
        .expected("0 <= begin <= end")
        .found(cat(pair[0], "..", pair[1]));
  begins_.push_back(pair[0]);
  ends_.push_back(pair[1]);
}

// Whether the bytes of the entry read last fit its shape and type. Throws kBadExtent.
void SafetensorsTable::check_extent() {
  std::span<const i64> dims = std::span(dims_).subspan(dims_begin_[dims_begin_.size() - 2]);
  Shape shape(dims);
  i64 expected = dtype_bytes(dtypes_.back(), shape.items()), found = ends_.back() - begins_.back();
  if (expected != found)
    throw Error(Code::kBadExtent, "the size of data_offsets does not match shape and dtype")
        .offset(json_->offset())
        .expected(cat(expected, " bytes for ", to_string(shape), " of ", dtype_name(dtypes_.back())))
        .found(cat(found, " bytes, ", begins_.back(), "..", ends_.back()));
  if (dtypes_.back() == DType::kF4) fold_float4();
}

// Safetensors counts 4-bit floats, torch the bytes of two. Rows of odd length have no form in torch and
// stay as they are.
void SafetensorsTable::fold_float4() {
  std::size_t begin = dims_begin_[dims_begin_.size() - 2];
  if (dims_.size() == begin || dims_.back() % 2 != 0) return;
  dims_.back() /= 2;
  dtypes_.back() = DType::kF4x2;
}

// Most files are in order already. Empty tensors come before the tensor that begins at the same place.
void SafetensorsTable::sort_by_offset() {
  order_.resize(names_.size());
  std::iota(order_.begin(), order_.end(), 0);
  auto less = [&](u32 a, u32 b) {
    return begins_[a] != begins_[b] ? begins_[a] < begins_[b] : ends_[a] < ends_[b];
  };
  if (!std::is_sorted(order_.begin(), order_.end(), less))
    std::stable_sort(order_.begin(), order_.end(), less);
}

// Throws kNotContiguous for a gap, an overlap or bytes behind the last tensor, kCutShort for a file that
// ends too early.
void SafetensorsTable::check_contiguous(i64 file_bytes) const {
  i64 covered = 0;
  for (i64 t = 0; t < size(); t++) {
    i64 begin = begins_[index(t)];
    if (begin != covered)
      throw Error(Code::kNotContiguous, begin > covered
                                            ? "there is a gap before the tensor's bytes (unreferenced data)"
                                            : "the tensor's offsets overlap those of another tensor")
          .tensor(name(t))
          .offset(in_file(begin))
          .expected(cat("data_offsets that begin at ", covered))
          .found(begin);
    covered = ends_[index(t)];
  }
  i64 data_bytes = file_bytes - data_begin_;
  if (covered > data_bytes) throw_cut_short(file_bytes);
  if (covered < data_bytes)
    throw Error(Code::kNotContiguous,
                "trailing bytes after the last tensor: the header does not cover the file")
        .offset(in_file(covered))
        .expected(cat("a file of ", in_file(covered), " bytes"))
        .found(cat(file_bytes, " bytes"));
}

// Says how much of the file is there, and how many tensors are whole.
void SafetensorsTable::throw_cut_short(i64 file_bytes) const {
  i64 promised = in_file(ends_[order_.back()]);
  i64 hit = 0;
  while (in_file(ends_[index(hit)]) <= file_bytes) hit++;
  i64 present = std::max<i64>(0, file_bytes - data_begin_);
  i64 per_mille = static_cast<i64>(1000.0 * static_cast<double>(file_bytes) / static_cast<double>(promised));
  throw Error(Code::kCutShort, "the file is cut short (truncated): tensors reach beyond its end")
      .expected(cat(promised, " bytes, as the header promises"))
      .found(cat(file_bytes, " bytes (", per_mille / 10, ".", per_mille % 10, " %)"))
      .note(cat("the first tensor that is cut: ", escaped(name(hit)), ", data bytes ", begins_[index(hit)],
                "..", ends_[index(hit)], " of ", present, " present"))
      .note(cat(hit, " of ", size(), " tensors are whole; ", size() - hit,
                size() - hit == 1 ? " is not" : " are not"))
      .help("fetch or copy the file again");
}

}  // namespace mckpt::impl
