// Turns the records of torch's metadata classes into rows while the pickle is read. The names of the fields
// are torch's; a missing field or one of another type throws kBadMetadata, as nothing after it could be
// trusted.
#include "io/dcp/metadata/rows.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "core/items/shape.h"
#include "io/file/folder.h"

namespace mckpt::impl {
namespace {

using ValueKind = PickleValue::Kind;

// The fields that are used, in torch's order. The code below names them by their position here.
constexpr std::string_view kTensorFields[] = {"properties", "size", "chunks"};
constexpr std::string_view kChunkFields[] = {"offsets", "sizes"};
constexpr std::string_view kPropertyFields[] = {"dtype"};
constexpr std::string_view kIndexFields[] = {"fqn", "offset", "index"};
constexpr std::string_view kStorageFields[] = {"relative_path", "offset", "length", "transform_descriptors"};

// Bytes of a pickle for everything about one chunk: its box, its index, its record and its part of the
// names. An estimate, to reserve memory.
constexpr std::size_t kBytesOfChunk = 256;

// A chunk of three dimensions takes less than its part of the pickle, one of 64 six times that.
constexpr i64 kTimes = 8;

// Bytes of the list of a record's extensions. Two are usual.
constexpr std::size_t kMostPackingText = 1024;

}  // namespace

DcpRows::DcpRows(i64 pickle_bytes)
    : room(pickle_bytes, kTimes),
      tensor_("TensorStorageMetadata", kTensorFields),
      chunk_("ChunkStorageMetadata", kChunkFields),
      properties_("TensorProperties", kPropertyFields),
      index_("MetadataIndex", kIndexFields),
      storage_("_StorageInfo", kStorageFields) {
  // Memory that growing columns leave behind is new memory too, which is dear. Room that stays unused costs
  // nothing.
  std::size_t chunks_expected = static_cast<std::size_t>(pickle_bytes) / kBytesOfChunk;
  boxes.reserve(chunks_expected, 4);
  indexes.reserve(chunks_expected);
  index_offsets.reserve(chunks_expected, 2);
  records.reserve(chunks_expected);
}

// ---- Texts

// The slot that has the text, or the free one where it belongs. pre: at least one slot is free.
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

// The note is one more than the number, because 0 means that there is no note. Numbers too large for a note
// are looked up each time.
u32 NameTable::add(PickleValue text) {
  u32 noted = text.note();
  if (noted != 0) return noted - 1;
  u32 number = add(text.text());
  if (number < PickleValue::kMostNote) text.set_note(number + 1);
  return number;
}

// At most half of the slots are used, so that searches stay short.
u32 NameTable::add(std::string_view text) {
  if (slots_.size() < static_cast<std::size_t>(size() + 1) * 2) grow();
  u32 hash = static_cast<u32>(NameHash()(text));
  Slot& slot = slots_[slot_of(text, hash)];
  if (slot.number_and_one == 0) {
    texts_.push_back(text);
    text_bytes_ += std::ssize(text);
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
    case Known::kNothing:
    case Known::kData:
      break;
    default:
      return Kind::kOther;
  }
  constexpr std::pair<std::string_view, Kind> kNames[] = {{"TensorStorageMetadata", Kind::kTensor},
                                                          {"BytesStorageMetadata", Kind::kBytes},
                                                          {"ChunkStorageMetadata", Kind::kChunk},
                                                          {"TensorProperties", Kind::kProperties},
                                                          {"MetadataIndex", Kind::kIndex},
                                                          {"_StorageInfo", Kind::kStorage},
                                                          {"SavePlan", Kind::kPlan},
                                                          {"WriteItem", Kind::kPlan},
                                                          {"TensorWriteData", Kind::kPlan}};
  for (auto [name, kind] : kNames)
    if (type.name == name) return kind;
  return Kind::kOther;
}

// Says what was found in place of a record, by its class where it has one.
void DcpRows::throw_no_row(PickleValue object, std::string_view what, std::string_view name) {
  std::string found = object.is(ValueKind::kObject)
                          ? cat("an object of class ", escaped(object.as_object().type->name))
                          : std::string(kind_name(object.kind()));
  Error e(Code::kBadMetadata,
          cat(what, " in .metadata is ", found, ", which is of an unexpected type or empty"));
  throw e.tensor(name);
}

// Called for an object whose state is already a value of the interpreter.
std::optional<u64> DcpRows::build(const PickleObject& object, PickleValue state) {
  // torch pickles the properties as a tuple that begins with the data type.
  if (state.is(ValueKind::kTuple) && kind_of(*object.type) == Kind::kProperties)
    return tagged(Kind::kProperties, dtype_row(state.at(0)));
  entries_.clear();
  for (PickleEntry e : state.entries()) entries_.insert(entries_.end(), {e.key, e.value});
  return build(*object.type, entries_);
}

// Called for an object whose state is still on the interpreter's stack, as keys and values in turn: the
// quick way, taken by nearly all records.
std::optional<u64> DcpRows::build(const PickleClass& type, std::span<const PickleValue> state) {
  Kind kind = kind_of(type);
  switch (kind) {
    case Kind::kTensor:
      tensor_.look(state);
      return tagged(kind, build_tensor());
    case Kind::kChunk:
      chunk_.look(state);
      return tagged(kind, build_chunk());
    case Kind::kProperties:
      properties_.look(state);
      return tagged(kind, dtype_row(properties_[0]));
    case Kind::kIndex:
      index_.look(state);
      return tagged(kind, build_index());
    case Kind::kStorage:
      storage_.look(state);
      return tagged(kind, build_record());
    case Kind::kPlan:
      // The plan of a rank is in the records too; for 1,000 ranks the plans are most of the pickle.
      return tagged(kind, 0);
    case Kind::kBytes:
    case Kind::kOther:
      break;
  }
  return std::nullopt;
}

std::vector<std::string> DcpRows::unknown_fields() const {
  std::vector<std::string> out;
  for (const FieldFinder* finder : {&tensor_, &chunk_, &index_, &storage_})
    for (std::string_view field : finder->strangers()) out.push_back(cat(finder->class_name(), ".", field));
  return out;
}

// TensorProperties: only the data type matters for the bytes. loading.cc checks that torch can read the other
// properties.
u64 DcpRows::dtype_row(PickleValue dtype) {
  if (!dtype.is(ValueKind::kClass) || dtype.as_class().known != Known::kDType)
    throw_bad_metadata(cat(
        "a TensorProperties in .metadata names no data type of torch, but ",
        dtype.is(ValueKind::kClass) ? escaped(dtype.as_class().name) : std::string(kind_name(dtype.kind()))));
  return static_cast<u64>(dtype.as_class().dtype);
}

// Appends the integers of a tuple (torch.Size is one) or list; returns how many.
std::size_t DcpRows::append_integers(std::vector<i64>& out, PickleValue value, std::string_view what) {
  if (!value.is(ValueKind::kTuple) && !value.is(ValueKind::kList))
    throw_bad_metadata(
        cat("a ", what, " in .metadata is ", kind_name(value.kind()), ", not a tuple of integers"));
  if (value.size() > Shape::kMaxRank)
    throw Error(Code::kBadShape, cat("too many dimensions: a ", what, " in .metadata"))
        .expected(cat("at most ", Shape::kMaxRank))
        .found(value.size());
  room.take(value.size() * i64{sizeof(i64)});
  auto append = [&](PickleValue v) {
    if (!v.is_int())
      throw_bad_metadata(
          cat("a ", what, " in .metadata holds ", kind_name(v.kind()), ", not an integer of 64 bits"));
    out.push_back(v.as_int());
  };
  // Nearly all are tuples, whose items are in one piece of memory.
  std::span<const PickleValue> tuple = value.tuple();
  for (PickleValue v : tuple) append(v);
  if (value.is(ValueKind::kTuple)) return tuple.size();
  for (PickleValue v : value.items()) append(v);
  return static_cast<std::size_t>(value.size());
}

u64 DcpRows::build_chunk() {
  PickleValue offsets = chunk_[0], sizes = chunk_[1];
  if (append_integers(boxes.items, offsets, "chunk's offsets") !=
      append_integers(boxes.items, sizes, "chunk's sizes"))
    throw_bad_metadata(
        cat("a chunk in .metadata has ", offsets.size(), " offsets, but ", sizes.size(), " sizes"));
  boxes.end_row();
  return static_cast<u64>(boxes.size() - 1);
}

// pre: the records of its chunks and properties were built; a pickle has them before what refers to them.
u64 DcpRows::build_tensor() {
  PickleValue list = tensor_[2];
  if (!list.is(ValueKind::kList) && !list.is(ValueKind::kTuple))
    throw_bad_metadata(
        cat("the chunks of a tensor in .metadata are ", kind_name(list.kind()), ", not a list"));
  append_integers(dims.items, tensor_[1], "tensor's size");
  room.take(list.size() * i64{sizeof(u32)});
  for (PickleValue chunk : list.items())
    chunks.items.push_back(static_cast<u32>(row_of(chunk, Kind::kChunk, "a chunk")));
  i64 of_properties = row_of(tensor_[0], Kind::kProperties, "a tensor's properties");
  dtypes.push_back(static_cast<DType>(of_properties));
  dims.end_row();
  chunks.end_row();
  return dtypes.size() - 1;
}

u64 DcpRows::build_index() {
  PickleValue name = index_[0], offset = index_.optional(1), hint = index_.optional(2);
  if (!name.is(ValueKind::kText))
    throw_bad_metadata(
        cat("the name of a MetadataIndex in .metadata is ", kind_name(name.kind()), ", not a string"));
  Index index{names.add(name), !offset.is_none(), hint.is_int() ? hint.as_int() : -1};
  if (index.has_offset) append_integers(index_offsets.items, offset, "MetadataIndex's offset");
  index_offsets.end_row();
  indexes.push_back(index);
  return indexes.size() - 1;
}

u64 DcpRows::build_record() {
  PickleValue path = storage_[0], transforms = storage_.optional(3);
  if (!path.is(ValueKind::kText))
    throw_bad_metadata(cat("a relative_path in .metadata is ", kind_name(path.kind()), ", not a string"));
  DcpRecord record;
  record.file = file_number(path);
  record.offset = storage_.integer(1);
  record.bytes = storage_.integer(2);
  record.packing = packing_number(transforms);
  records.push_back(record);
  return records.size() - 1;
}

// The number of what the extensions are; -1 for none.
i32 DcpRows::packing_number(PickleValue descriptors) {
  if (descriptors.is_none() || descriptors.size() == 0) return -1;
  std::string text;
  for (PickleValue name : descriptors.items()) {
    if (!name.is(ValueKind::kText))
      throw_bad_metadata(
          cat("a transform_descriptor in .metadata is ", kind_name(name.kind()), ", not a string"));
    text += cat(text.empty() ? "" : ",", name.text());
    if (text.size() > kMostPackingText)
      throw_bad_metadata(
          cat("transform_descriptors in .metadata are longer than ", kMostPackingText, " bytes"));
  }
  if (text.empty())
    throw_bad_metadata(
        cat("transform_descriptors in .metadata are ", kind_name(descriptors.kind()), ", not a list"));
  auto at = std::ranges::find(packings, text);
  if (at == packings.end()) at = packings.insert(at, std::move(text));
  return static_cast<i32>(at - packings.begin());
}

// No program writes such a path: a block of the file was lost. A pickle has the index of a record before the
// record.
void DcpRows::throw_zeroed_path(std::string_view path) const {
  Error e(Code::kBadMetadata, ".metadata is damaged: the name of a data file has bytes that are zero");
  if (!indexes.empty()) e.tensor(names[indexes.back().name]);
  throw e.found(escaped(path)).help("copy or download the file again");
}

// The number of a data file by its path. Throws kBadPath for one that leads out of the folder.
i32 DcpRows::file_number(PickleValue path) {
  // Most records share the text of their file's name, so recent texts are remembered by their place in the
  // pickle.
  SeenPath& seen = seen_[reinterpret_cast<std::uintptr_t>(path.node()) / alignof(PickleNode) % seen_.size()];
  if (seen.path == path) return seen.file;
  std::string_view text = path.text();
  auto [at, is_new] = file_numbers_.try_emplace(std::string(text), static_cast<i32>(files.size()));
  if (is_new) {
    if (text.find('\0') != text.npos) throw_zeroed_path(text);
    check_inside_name(text);
    files.emplace_back(text);
  }
  seen = {path, at->second};
  return at->second;
}

}  // namespace mckpt::impl
