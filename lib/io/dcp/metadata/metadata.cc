// Joins the rows that DcpRows collected while the pickle was read. Three dicts of .metadata refer to each
// other by name and offset:
//
//   state_dict_metadata    "w" -> tensor with chunks at [0, 0] and [6, 0]
//                                      ^ found by name, then by offset
//   storage_data           ("w", [6, 0], hint 1) -> file 1, bytes [0, 1577)
//   planner_data           "w" -> ("model", "w"): read only for the numbers of layers
//
// The hint is the position in the list of chunks; torch writes it, torch_dist does not. With a hint an
// entry is placed at once, without it the chunks of the tensor are searched by offset.
#include "io/dcp/metadata/metadata.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "io/dcp/keys/dialect.h"
#include "io/dcp/keys/key.h"
#include "io/dcp/metadata/root.h"
#include "io/dcp/metadata/rows.h"
#include "io/store/findings.h"

namespace mckpt::impl {
namespace {

using ValueKind = PickleValue::Kind;

// Makes the columns of DcpMetadata: pairs names with tensors, and chunks with the places of their bytes. One
// object parses one file.
class Linker {
 public:
  explicit Linker(DcpRows& rows) : rows_(rows) {}
  DcpMetadata run(const Pickle& pickle);

 private:
  static constexpr i64 kNothing = INT64_MIN;

  void add_names(PickleValue dict);
  void add_tensor(std::string_view name, i64 row);
  void add_records(PickleValue dict);
  void place(const DcpRows::Index& index, std::span<const i64> offset, const DcpRecord& record);
  i64 find_chunk(i64 tensor, const DcpRows::Index& index, std::span<const i64> offset);
  i64 find_by_offset(i64 tensor, std::span<const i64> offset);
  void check_hints();
  std::span<i64> ordered_chunks(i64 tensor);
  bool before(i64 tensor, i64 a, i64 b) const;
  void complete_records();
  void complete_records(i64 tensor);
  void read_planner(PickleValue dict);

  std::span<const i64> chunk_offset(i64 tensor, i64 chunk) const;
  std::size_t first_record(i64 tensor) const {
    return static_cast<std::size_t>(out_.records[tensor].data() - out_.records.items.data());
  }
  void check_classes(const Pickle& pickle);
  void add_finding(Code code, std::string_view name, std::string message, bool warning);

  DcpRows& rows_;
  DcpMetadata out_;
  // By number of a name: its tensor (0 or more), or ~index of its object (negative), or kNothing.
  std::vector<i64> meaning_;
  // The chunks of each tensor ordered by offset, for those whose MetadataIndex does not say their position;
  // made when first needed. Laid out as the chunks of out_ are.
  std::vector<i64> by_offset_;
  std::map<i64, std::map<i64, i64>> other_hints_;  // by tensor and chunk, a MetadataIndex's other position
  Findings findings_;
};

// A field of Metadata that must be a dict. Throws kBadMetadata.
PickleValue dict_field(const PickleObject& metadata, std::string_view name) {
  const PickleValue* value = metadata.field(name);
  if (value == nullptr)
    throw_bad_metadata(
        cat("the object in .metadata, of class ", escaped(metadata.type->name), ", has no ", name));
  if (!value->is(ValueKind::kDict))
    throw_bad_metadata(
        cat(name, " in .metadata is ", kind_name(value->kind()), ", not a dict: an unexpected type"));
  return *value;
}

std::string text_or_nothing(const PickleValue* value) {
  return value != nullptr && value->is(ValueKind::kText) ? std::string(value->text()) : std::string();
}

// Notes of the pickle interpreter (a class that is unknown, for example) become findings of the folder.
DcpMetadata Linker::run(const Pickle& pickle) {
  PickleValue root = pickle.root();
  if (!root.is(ValueKind::kObject))
    throw_bad_metadata(
        cat(".metadata holds ", kind_name(root.kind()), ", not an object of torch's class Metadata"));
  const PickleObject& metadata = root.as_object();
  check_classes(pickle);
  for (const PickleNote& note : pickle.notes())
    findings_.add({.code = note.code,
                   .file = ".metadata",
                   .message = note.message,
                   .offset = note.offset,
                   .warning = note.warning});
  add_names(dict_field(metadata, "state_dict_metadata"));
  add_records(dict_field(metadata, "storage_data"));
  complete_records();
  check_hints();
  if (const PickleValue* planner = metadata.field("planner_data")) read_planner(*planner);
  out_.version = text_or_nothing(metadata.field("version"));
  if (const PickleValue* meta = metadata.field("storage_meta");
      meta != nullptr && meta->is(ValueKind::kObject))
    out_.save_id = text_or_nothing(meta->as_object().field("save_id"));
  out_.files = rows_.files;
  out_.packings = rows_.packings;
  out_.findings = findings_.take();
  return std::move(out_);
}

// torch reads .metadata by importing what it names. A class of a torch module that torch does not have makes
// the whole file unreadable. Classes of other packages are not judged: they may be installed where the file
// is loaded. Classes of fields that are newer than this list are not checked either: they may be as new.
void Linker::check_classes(const Pickle& pickle) {
  std::set<const PickleClass*> newer = classes_of_unknown_fields(pickle.root().as_object());
  for (const PickleClass& c : pickle.classes())
    if (c.trust == Trust::kUnlisted && (c.module == "torch" || c.module.starts_with("torch.")) &&
        !newer.contains(&c))
      findings_.add({.code = Code::kBadMetadata,
                     .file = ".metadata",
                     .message = cat("torch cannot read .metadata, because torch has no ", escaped(c.module),
                                    ".", escaped(c.name)),
                     .offset = c.offset});
}

void Linker::add_finding(Code code, std::string_view name, std::string message, bool warning) {
  findings_.add({.code = code,
                 .tensor = std::string(name),
                 .file = ".metadata",
                 .message = std::move(message),
                 .warning = warning});
}

// ---- Tensors and objects

// Numbers every name and gives it its meaning: a tensor or an object. Throws kBadMetadata for a name that
// occurs twice.
void Linker::add_names(PickleValue dict) {
  meaning_.assign(static_cast<std::size_t>(rows_.names.size()), kNothing);
  out_.records.items.reserve(rows_.chunks.items.size());
  out_.offsets.items.reserve(rows_.boxes.items.size() / 2);
  out_.sizes.items.reserve(rows_.boxes.items.size() / 2);
  out_.names.items.reserve(static_cast<std::size_t>(rows_.names.text_bytes()));
  out_.dims.items.reserve(rows_.dims.items.size());
  out_.dtypes.reserve(rows_.dtypes.size());
  for (std::vector<i64>* ends :
       {&out_.names.ends, &out_.dims.ends, &out_.records.ends, &out_.offsets.ends, &out_.sizes.ends})
    ends->reserve(rows_.dtypes.size());
  for (auto [key, value] : dict.entries()) {
    if (!key.is(ValueKind::kText))
      throw_bad_metadata(cat("a name in .metadata is ", kind_name(key.kind()), ", not a string"));
    std::string_view name = key.text();
    std::size_t number = rows_.names.add(key);
    if (number == meaning_.size()) meaning_.push_back(kNothing);
    if (meaning_[number] != kNothing)
      throw_bad_metadata(cat("the name '", escaped(name), "' occurs twice in .metadata"));
    bool is_bytes =
        value.is(ValueKind::kObject) && DcpRows::kind_of(*value.as_object().type) == DcpRows::Kind::kBytes;
    if (is_bytes) {
      meaning_[number] = ~out_.object_names.size();
      out_.object_names.items.insert(out_.object_names.items.end(), name.begin(), name.end());
      out_.object_names.end_row();
      out_.object_records.emplace_back();
    } else {
      meaning_[number] = out_.tensor_count();
      add_tensor(name, DcpRows::row_of(value, DcpRows::Kind::kTensor, "the value of a name", name));
    }
  }
}

// Appends a tensor's row to every column. Its records are empty until storage_data is read.
void Linker::add_tensor(std::string_view name, i64 row) {
  std::span<const i64> dims = rows_.dims[row];
  try {
    checked_items(dims);
  } catch (Error& e) {
    throw e.default_tensor(name);
  }
  std::span<const u32> chunks = rows_.chunks[row];
  rows_.room.take(std::ssize(name) + std::ssize(dims) * i64{sizeof(i64)} +
                  std::ssize(chunks) * (2 * std::ssize(dims) * i64{sizeof(i64)} + i64{sizeof(DcpRecord)}));
  for (u32 chunk : chunks) {
    std::span<const i64> box = rows_.boxes[chunk];
    if (box.size() != 2 * dims.size())
      throw Error(Code::kBadMetadata, "a chunk in .metadata has another number of dimensions than its tensor")
          .tensor(name)
          .expected(dims.size())
          .found(box.size() / 2);
    out_.offsets.items.insert(out_.offsets.items.end(), box.begin(),
                              box.begin() + static_cast<std::ptrdiff_t>(dims.size()));
    out_.sizes.items.insert(out_.sizes.items.end(), box.begin() + static_cast<std::ptrdiff_t>(dims.size()),
                            box.end());
    out_.records.items.emplace_back();
  }
  out_.names.items.insert(out_.names.items.end(), name.begin(), name.end());
  out_.dims.items.insert(out_.dims.items.end(), dims.begin(), dims.end());
  out_.dtypes.push_back(rows_.dtypes[row]);
  out_.names.end_row();
  out_.dims.end_row();
  out_.offsets.end_row();
  out_.sizes.end_row();
  out_.records.end_row();
}

// ---- The places of the bytes

// Reads storage_data: each entry goes to the chunk or object that its key names.
void Linker::add_records(PickleValue dict) {
  for (auto [key, value] : dict.entries()) {
    i64 index = DcpRows::row_of(key, DcpRows::Kind::kIndex, "a key of storage_data");
    i64 record = DcpRows::row_of(value, DcpRows::Kind::kStorage, "a value of storage_data");
    place(rows_.indexes[index], rows_.index_offsets[index], rows_.records[record]);
  }
}

// An entry for an unknown tensor, object or offset is a warning: its bytes are not read, but everything that
// .metadata lists is there.
void Linker::place(const DcpRows::Index& index, std::span<const i64> offset, const DcpRecord& record) {
  std::string_view name = rows_.names[index.name];
  i64 meaning = meaning_[index.name];
  if (meaning == kNothing)
    return add_finding(
        Code::kRecordUnused, name,
        "an unknown name: storage_data has bytes for it, but .metadata lists no tensor or object of it",
        true);
  if (meaning < 0) {
    out_.object_records[~meaning] = record;
    return;
  }
  i64 chunk = find_chunk(meaning, index, offset);
  if (chunk < 0)
    return add_finding(Code::kRecordUnused, name,
                       cat("storage_data has bytes for an offset ", dims_to_string(offset),
                           " at which the tensor has no chunk"),
                       true);
  out_.records.items[first_record(meaning) + static_cast<std::size_t>(chunk)] = record;
}

std::span<const i64> Linker::chunk_offset(i64 tensor, i64 chunk) const {
  std::size_t rank = out_.dims[tensor].size();
  return out_.offsets[tensor].subspan(static_cast<std::size_t>(chunk) * rank, rank);
}

// Returns the position of the chunk with this offset among the chunks of the tensor, -1 if there is none. The
// offset decides; a wrong hint is only reported, as torch ignores it too.
i64 Linker::find_chunk(i64 tensor, const DcpRows::Index& index, std::span<const i64> offset) {
  i64 count = static_cast<i64>(out_.records[tensor].size());
  // Without an offset, only a tensor of one chunk can be meant.
  if (!index.has_offset) return count == 1 ? 0 : -1;
  auto lies_at = [&](i64 chunk) { return std::ranges::equal(chunk_offset(tensor, chunk), offset); };
  if (index.hint >= 0 && index.hint < count && lies_at(index.hint)) return index.hint;
  i64 chunk = count == 1 ? (lies_at(0) ? 0 : -1) : find_by_offset(tensor, offset);
  if (index.hint >= 0 && chunk >= 0) other_hints_[tensor].emplace(chunk, index.hint);
  return chunk;
}

// Where ranks have tensors of several chunks, each counts its own: torch joins the lists of the ranks and
// leaves the positions as they were. The hints of one rank, whose files are "__2_0.distcp" and so on, ascend.
void Linker::check_hints() {
  for (const auto& [tensor, hints] : other_hints_) {
    std::map<std::string_view, i64> last;
    for (i64 chunk = 0; chunk < std::ssize(out_.records[tensor]); chunk++) {
      const DcpRecord& record = out_.records[tensor][chunk];
      if (record.file < 0) continue;
      const std::string& file = rows_.files[record.file];
      auto other = hints.find(chunk);
      const i64 hint = other == hints.end() ? chunk : other->second;
      auto [at, fresh] = last.try_emplace(std::string_view(file).substr(0, file.rfind('_')), -1);
      if (hint <= at->second || hint > chunk)
        add_finding(
            Code::kBadMetadata, out_.name(tensor),
            cat("the index of storage_data says position ", hint, " for the chunk at position ", chunk),
            true);
      at->second = hint;
    }
  }
}

// The order of chunks by offset, the first dimension first.
bool Linker::before(i64 tensor, i64 a, i64 b) const {
  return std::ranges::lexicographical_compare(chunk_offset(tensor, a), chunk_offset(tensor, b));
}

// The positions of the tensor's chunks by ascending offset. The first call sorts them for all tensors: a
// file without hints needs all of them.
std::span<i64> Linker::ordered_chunks(i64 tensor) {
  bool ordered = by_offset_.size() == out_.records.items.size();
  by_offset_.resize(out_.records.items.size());
  auto of = [&](i64 t) { return std::span(by_offset_).subspan(first_record(t), out_.records[t].size()); };
  for (i64 t = 0; t < out_.tensor_count() && !ordered; t++) {
    std::iota(of(t).begin(), of(t).end(), 0);
    std::ranges::sort(of(t), [&](i64 a, i64 b) { return before(t, a, b) || (!before(t, b, a) && a < b); });
  }
  return of(tensor);
}

// Returns the position of a chunk at exactly this offset, or -1.
i64 Linker::find_by_offset(i64 tensor, std::span<const i64> offset) {
  std::span<i64> chunks = ordered_chunks(tensor);
  auto at = std::ranges::lower_bound(
      chunks, offset, [](auto a, auto b) { return std::ranges::lexicographical_compare(a, b); },
      [&](i64 chunk) { return chunk_offset(tensor, chunk); });
  return at != chunks.end() && std::ranges::equal(chunk_offset(tensor, *at), offset) ? *at : -1;
}

// Gives every chunk of the tensor the record of its offset, and reports chunks without one. Several chunks at
// one offset (the empty chunks of several ranks) share one entry of storage_data.
void Linker::complete_records(i64 tensor) {
  std::span<i64> chunks = ordered_chunks(tensor);
  auto record = [&](i64 chunk) -> DcpRecord& {
    return out_.records.items[first_record(tensor) + static_cast<std::size_t>(chunk)];
  };
  for (std::size_t begin = 0, end = 0; begin < chunks.size(); begin = end) {
    while (end < chunks.size() && !before(tensor, chunks[begin], chunks[end])) end++;
    DcpRecord known;
    for (i64 chunk : chunks.subspan(begin, end - begin))
      if (record(chunk).file >= 0) known = record(chunk);
    for (i64 chunk : chunks.subspan(begin, end - begin)) {
      if (record(chunk).file < 0) record(chunk) = known;
      if (known.file < 0)
        add_finding(Code::kRecordMissing, out_.name(tensor),
                    cat("chunk ", chunk, " at ", dims_to_string(chunk_offset(tensor, chunk)),
                        " has no entry in storage_data"),
                    false);
    }
  }
}

// Reports each chunk and object that no entry of storage_data names: its data are lost.
void Linker::complete_records() {
  for (i64 t = 0; t < out_.tensor_count(); t++)
    if (std::ranges::any_of(out_.records[t], [](const DcpRecord& r) { return r.file < 0; }))
      complete_records(t);
  for (i64 o = 0; o < out_.object_names.size(); o++)
    if (out_.object_records[o].file < 0)
      add_finding(Code::kRecordMissing, out_.object_name(o), "the object has no entry in storage_data",
                  false);
}

// ---- planner_data

// Notices a training run whose pipeline stages all numbered their layers from 0. planner_data begins with the
// names of the last rank, in the order of its model, so a layer 0 before the embedding is one of the last
// stage.
void Linker::read_planner(PickleValue dict) {
  if (dict.is_none()) return;
  if (!dict.is(ValueKind::kDict))
    return add_finding(Code::kBadMetadata, "",
                       cat("planner_data is ", kind_name(dict.kind()), ", not a dict"), true);
  std::optional<i64> first_layer;  // of the tower that has the embedding
  const std::size_t rows = static_cast<std::size_t>(out_.names.size() + out_.object_names.size());
  out_.saved_order.ends.reserve(rows);
  out_.saved_order.items.reserve(out_.names.items.size() + out_.object_names.items.size());
  for (auto [key, path] : dict.entries()) {
    if (!key.is(ValueKind::kText) || !path.is(ValueKind::kTuple)) {
      add_finding(
          Code::kBadMetadata, key.is(ValueKind::kText) ? key.text() : "",
          cat("planner_data holds ", kind_name(path.kind()), ", an unsupported type, instead of a path"),
          true);
      continue;
    }
    const std::string_view name = key.text();
    rows_.room.take(std::ssize(name));
    out_.saved_order.items.insert(out_.saved_order.items.end(), name.begin(), name.end());
    out_.saved_order.end_row();
    DcpKey parts = split_key(DcpDialect::kFsdpDtensor, name);
    if (parts.section != DcpKey::Section::kModel) continue;
    if (parts.parameter.starts_with("vision_model.")) continue;
    auto layer = numbered(parts.parameter, "decoder.layers.");
    if (layer && !first_layer) first_layer = layer->number;
    if (first_layer == 0 && parts.parameter.ends_with("embedding.word_embeddings.weight"))
      out_.stage_local_layers = true;
  }
}

}  // namespace

DcpMetadata parse_dcp_metadata(std::span<const u8> bytes) {
  DcpRows rows(std::ssize(bytes));
  PickleRules rules;
  rules.visitor = &rows;
  Pickle pickle(bytes, rules);
  if (pickle.bytes() != static_cast<i64>(bytes.size()))
    throw Error(Code::kBadMetadata, "bytes follow the end of the pickle in .metadata")
        .expected(pickle.bytes())
        .found(bytes.size());
  return Linker(rows).run(pickle);
}

}  // namespace mckpt::impl
