#include "io/dcp_rows.h"

#include <array>
#include <utility>

#include "core/name_hash.h"
#include "io/folder.h"

namespace mckpt {
namespace {

using ValueKind = PickleValue::Kind;

// The fields of a record's state, in one pass.
template <std::size_t kCount>
class Fields {
 public:
  // `names` are best in the order in which torch writes them: each is then compared once.
  Fields(std::string_view class_name, const std::array<std::string_view, kCount>& names, PickleValue state)
      : class_name_(class_name), names_(names) {
    std::size_t next = 0;
    for (PickleEntry e : state.entries()) {
      if (!e.key.is(ValueKind::kText)) continue;
      for (std::size_t tried = 0; tried < kCount; tried++) {
        std::size_t i = next + tried < kCount ? next + tried : next + tried - kCount;
        if (names[i] != e.key.text()) continue;
        values_[i] = e.value;  // the last of equal keys counts, as in Python
        found_ |= 1u << i;
        next = i + 1 < kCount ? i + 1 : 0;
        break;
      }
    }
  }

  PickleValue optional(std::size_t i) const { return values_[i]; }  // None: not there
  PickleValue operator[](std::size_t i) const {
    if ((found_ >> i & 1) == 0)
      throw_bad_metadata(cat("a ", class_name_, " in .metadata has no field '", names_[i], "'"));
    return values_[i];
  }
  i64 integer(std::size_t i) const {
    PickleValue v = (*this)[i];
    if (!v.is_int())
      throw_bad_metadata(cat("the field '", names_[i], "' of a ", class_name_, " in .metadata is ",
                             kind_name(v.kind()),
                             ", not an integer of 64 bits: out of range or of another type"));
    return v.as_int();
  }

 private:
  std::string_view class_name_;
  const std::array<std::string_view, kCount>& names_;
  std::array<PickleValue, kCount> values_;
  unsigned found_ = 0;
};

// Appends the integers of a tuple (torch.Size is one) or list; returns how many.
std::size_t append_integers(std::vector<i64>& out, PickleValue value, std::string_view what) {
  if (!value.is(ValueKind::kTuple) && !value.is(ValueKind::kList))
    throw_bad_metadata(
        cat("a ", what, " in .metadata is ", kind_name(value.kind()), ", not a tuple of integers"));
  for (PickleValue v : value.items()) {
    if (!v.is_int())
      throw_bad_metadata(
          cat("a ", what, " in .metadata holds ", kind_name(v.kind()), ", not an integer of 64 bits"));
    out.push_back(v.as_int());
  }
  return static_cast<std::size_t>(value.size());
}

}  // namespace

void throw_bad_metadata(std::string message) { throw Error(Code::kBadMetadata, std::move(message)); }

// ---- Texts

std::size_t NameTable::slot_of(std::string_view text, u32 hash) const {
  std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  for (; slots_[at].number_and_one != 0; at = (at + 1) & mask)
    if (slots_[at].hash == hash && (*this)[slots_[at].number_and_one - 1] == text) break;
  return at;
}

void NameTable::grow() {
  std::vector<Slot> old = std::exchange(slots_, {});
  slots_.resize(std::max<std::size_t>(1024, old.size() * 4));
  std::size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.number_and_one == 0) continue;
    std::size_t at = slot.hash & mask;
    while (slots_[at].number_and_one != 0) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

u32 NameTable::add(PickleValue text) {
  u32 noted = text.note();
  if (noted != 0) return noted - 1;
  u32 number = add(text.text());
  if (number < PickleValue::kMostNote) text.set_note(number + 1);
  return number;
}

u32 NameTable::add(std::string_view text) {
  if (slots_.size() < static_cast<std::size_t>(size() + 1) * 2) grow();
  u32 hash = static_cast<u32>(NameHash()(text));
  Slot& slot = slots_[slot_of(text, hash)];
  if (slot.number_and_one == 0) {
    texts_.push_back(text);
    slot = {hash, static_cast<u32>(size())};
  }
  return slot.number_and_one - 1;
}

// ---- Records

DcpRows::Kind DcpRows::kind_of(const PickleClass& type) {
  switch (type.known) {
    case Known::kTensorStorageMetadata:
      return Kind::kTensor;
    case Known::kBytesStorageMetadata:
      return Kind::kBytes;
    case Known::kChunkStorageMetadata:
      return Kind::kChunk;
    case Known::kTensorProperties:
      return Kind::kProperties;
    case Known::kMetadataIndex:
      return Kind::kIndex;
    case Known::kStorageInfo:
      return Kind::kStorage;
    case Known::kStorageMeta:
      return Kind::kStorageMeta;
    case Known::kNothing:
      break;
    default:
      return Kind::kOther;
  }
  constexpr std::pair<std::string_view, Kind> kNames[] = {
      {"TensorStorageMetadata", Kind::kTensor}, {"BytesStorageMetadata", Kind::kBytes},
      {"ChunkStorageMetadata", Kind::kChunk},   {"TensorProperties", Kind::kProperties},
      {"MetadataIndex", Kind::kIndex},          {"_StorageInfo", Kind::kStorage},
      {"StorageMeta", Kind::kStorageMeta}};
  for (auto [name, kind] : kNames)
    if (type.name == name) return kind;
  return Kind::kOther;
}

i64 DcpRows::row_of(PickleValue object, Kind kind, std::string_view what, std::string_view name) {
  std::optional<u64> number = object.row();
  if (number && *number >> kKindShift == static_cast<u64>(kind))
    return static_cast<i64>(*number & ((u64{1} << kKindShift) - 1));
  std::string found = object.is(ValueKind::kObject)
                          ? cat("an object of class ", escaped(object.as_object().type->name))
                          : std::string(kind_name(object.kind()));
  Error e(Code::kBadMetadata, cat(what, " in .metadata is ", found, ", an unexpected type, or empty"));
  throw e.tensor(name);
}

std::optional<u64> DcpRows::build(const PickleObject& object, PickleValue state) {
  Kind kind = kind_of(*object.type);
  auto tagged = [&](u64 row) { return static_cast<u64>(kind) << kKindShift | row; };
  switch (kind) {
    case Kind::kTensor:
      return tagged(build_tensor(state));
    case Kind::kChunk:
      return tagged(build_chunk(state));
    case Kind::kProperties:
      return tagged(build_properties(state));
    case Kind::kIndex:
      return tagged(build_index(state));
    case Kind::kStorage:
      return tagged(build_record(state));
    case Kind::kBytes:
    case Kind::kStorageMeta:
    case Kind::kOther:
      break;
  }
  return std::nullopt;
}

// torch pickles the properties as a tuple that begins with the data type.
u64 DcpRows::build_properties(PickleValue state) {
  static constexpr std::array<std::string_view, 1> kNames = {"dtype"};
  PickleValue dtype =
      state.is(ValueKind::kTuple) ? state.at(0) : Fields("TensorProperties", kNames, state)[0];
  if (!dtype.is(ValueKind::kClass) || dtype.as_class().known != Known::kDType)
    throw_bad_metadata(cat(
        "a TensorProperties in .metadata names no data type of torch, but ",
        dtype.is(ValueKind::kClass) ? escaped(dtype.as_class().name) : std::string(kind_name(dtype.kind()))));
  return static_cast<u64>(dtype.as_class().dtype);
}

u64 DcpRows::build_chunk(PickleValue state) {
  static constexpr std::array<std::string_view, 2> kNames = {"offsets", "sizes"};
  Fields fields("ChunkStorageMetadata", kNames, state);
  PickleValue offsets = fields[0], sizes = fields[1];
  if (append_integers(boxes.items, offsets, "chunk's offsets") !=
      append_integers(boxes.items, sizes, "chunk's sizes"))
    throw_bad_metadata(
        cat("a chunk in .metadata has ", offsets.size(), " offsets, but ", sizes.size(), " sizes"));
  boxes.end_row();
  return static_cast<u64>(boxes.size() - 1);
}

u64 DcpRows::build_tensor(PickleValue state) {
  static constexpr std::array<std::string_view, 3> kNames = {"properties", "size", "chunks"};
  Fields fields("TensorStorageMetadata", kNames, state);
  PickleValue list = fields[2];
  if (!list.is(ValueKind::kList) && !list.is(ValueKind::kTuple))
    throw_bad_metadata(
        cat("the chunks of a tensor in .metadata are ", kind_name(list.kind()), ", not a list"));
  append_integers(dims.items, fields[1], "tensor's size");
  for (PickleValue chunk : list.items())
    chunks.items.push_back(static_cast<u32>(row_of(chunk, Kind::kChunk, "a chunk")));
  i64 of_properties = row_of(fields[0], Kind::kProperties, "a tensor's properties");
  dtypes.push_back(static_cast<DType>(of_properties));
  dims.end_row();
  chunks.end_row();
  return dtypes.size() - 1;
}

u64 DcpRows::build_index(PickleValue state) {
  static constexpr std::array<std::string_view, 3> kNames = {"fqn", "offset", "index"};
  Fields fields("MetadataIndex", kNames, state);
  PickleValue name = fields[0], offset = fields.optional(1), hint = fields.optional(2);
  if (!name.is(ValueKind::kText))
    throw_bad_metadata(
        cat("the name of a MetadataIndex in .metadata is ", kind_name(name.kind()), ", not a string"));
  Index index{names.add(name), !offset.is_none(), hint.is_int() ? hint.as_int() : -1};
  if (index.has_offset) append_integers(index_offsets.items, offset, "MetadataIndex's offset");
  index_offsets.end_row();
  indexes.push_back(index);
  return indexes.size() - 1;
}

u64 DcpRows::build_record(PickleValue state) {
  static constexpr std::array<std::string_view, 4> kNames = {"relative_path", "offset", "length",
                                                             "transform_descriptors"};
  Fields fields("_StorageInfo", kNames, state);
  PickleValue path = fields[0], transforms = fields.optional(3);
  if (!path.is(ValueKind::kText))
    throw_bad_metadata(cat("a relative_path in .metadata is ", kind_name(path.kind()), ", not a string"));
  DcpRecord record;
  record.file = file_number(path.text());
  record.offset = fields.integer(1);
  record.bytes = fields.integer(2);
  record.transformed = transforms.size() > 0;
  records.push_back(record);
  return records.size() - 1;
}

i32 DcpRows::file_number(std::string_view path) {
  // Records of one file mostly come one after the other.
  if (!records.empty() && files[static_cast<std::size_t>(records.back().file)] == path)
    return records.back().file;
  auto [at, is_new] = file_numbers_.try_emplace(std::string(path), static_cast<i32>(files.size()));
  if (is_new) {
    check_inside_name(path);
    files.emplace_back(path);
  }
  return at->second;
}

}  // namespace mckpt
