#include "io/dcp_rows.h"

#include <utility>

#include "core/name_hash.h"
#include "io/folder.h"

namespace mckpt {
namespace {

using ValueKind = PickleValue::Kind;

PickleValue field(PickleValue state, std::string_view class_name, std::string_view name) {
  const PickleValue* value = state.find(name);
  if (value == nullptr) throw_bad_metadata(cat("a ", class_name, " in .metadata has no field '", name, "'"));
  return *value;
}

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

i64 integer_field(PickleValue state, std::string_view class_name, std::string_view name) {
  PickleValue v = field(state, class_name, name);
  if (!v.is_int())
    throw_bad_metadata(cat("the field '", name, "' of a ", class_name, " in .metadata is ",
                           kind_name(v.kind()),
                           ", not an integer of 64 bits: out of range or of another type"));
  return v.as_int();
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

u32 NameTable::add(std::string_view text) {
  if (slots_.size() < static_cast<std::size_t>(size() + 1) * 2) grow();
  u32 hash = static_cast<u32>(NameHash()(text));
  Slot& slot = slots_[slot_of(text, hash)];
  if (slot.number_and_one == 0) {
    texts_.items.insert(texts_.items.end(), text.begin(), text.end());
    texts_.end_row();
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
  PickleValue dtype = state.is(ValueKind::kTuple) ? state.at(0) : field(state, "TensorProperties", "dtype");
  if (!dtype.is(ValueKind::kClass) || dtype.as_class().known != Known::kDType)
    throw_bad_metadata(cat(
        "a TensorProperties in .metadata names no data type of torch, but ",
        dtype.is(ValueKind::kClass) ? escaped(dtype.as_class().name) : std::string(kind_name(dtype.kind()))));
  return static_cast<u64>(dtype.as_class().dtype);
}

u64 DcpRows::build_chunk(PickleValue state) {
  PickleValue offsets = field(state, "ChunkStorageMetadata", "offsets");
  PickleValue sizes = field(state, "ChunkStorageMetadata", "sizes");
  if (append_integers(boxes.items, offsets, "chunk's offsets") !=
      append_integers(boxes.items, sizes, "chunk's sizes"))
    throw_bad_metadata(
        cat("a chunk in .metadata has ", offsets.size(), " offsets, but ", sizes.size(), " sizes"));
  boxes.end_row();
  return static_cast<u64>(boxes.size() - 1);
}

u64 DcpRows::build_tensor(PickleValue state) {
  PickleValue list = field(state, "TensorStorageMetadata", "chunks");
  if (!list.is(ValueKind::kList) && !list.is(ValueKind::kTuple))
    throw_bad_metadata(
        cat("the chunks of a tensor in .metadata are ", kind_name(list.kind()), ", not a list"));
  append_integers(dims.items, field(state, "TensorStorageMetadata", "size"), "tensor's size");
  for (PickleValue chunk : list.items())
    chunks.items.push_back(static_cast<u32>(row_of(chunk, Kind::kChunk, "a chunk")));
  i64 of_properties =
      row_of(field(state, "TensorStorageMetadata", "properties"), Kind::kProperties, "a tensor's properties");
  dtypes.push_back(static_cast<DType>(of_properties));
  dims.end_row();
  chunks.end_row();
  return dtypes.size() - 1;
}

u64 DcpRows::build_index(PickleValue state) {
  PickleValue name = field(state, "MetadataIndex", "fqn");
  if (!name.is(ValueKind::kText))
    throw_bad_metadata(
        cat("the name of a MetadataIndex in .metadata is ", kind_name(name.kind()), ", not a string"));
  Index index{names.add(name.text()), false, -1};
  if (const PickleValue* offset = state.find("offset"); offset != nullptr && !offset->is_none()) {
    append_integers(index_offsets.items, *offset, "MetadataIndex's offset");
    index.has_offset = true;
  }
  index_offsets.end_row();
  if (const PickleValue* hint = state.find("index"); hint != nullptr && hint->is_int())
    index.hint = hint->as_int();
  indexes.push_back(index);
  return indexes.size() - 1;
}

u64 DcpRows::build_record(PickleValue state) {
  constexpr std::string_view kClass = "_StorageInfo";
  PickleValue path = field(state, kClass, "relative_path");
  if (!path.is(ValueKind::kText))
    throw_bad_metadata(cat("a relative_path in .metadata is ", kind_name(path.kind()), ", not a string"));
  DcpRecord record;
  record.file = file_number(path.text());
  record.offset = integer_field(state, kClass, "offset");
  record.bytes = integer_field(state, kClass, "length");
  const PickleValue* transforms = state.find("transform_descriptors");
  record.transformed = transforms != nullptr && !transforms->is_none() && transforms->size() > 0;
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
