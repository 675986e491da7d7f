// Writes the .metadata of a laid-out folder as a stream, opcode by opcode, in the order in which torch
// pickles it. A text that was written before is written as its number in the memo, as picklers do; without
// that a model's .metadata would be several times as large.
//
//   begin(class)   GLOBAL class, EMPTY_TUPLE, NEWOBJ, EMPTY_DICT, MARK
//   field(name)    the name, followed by its value
//   end()          SETITEMS, BUILD
#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "core/base/name_hash.h"
#include "io/dcp/write/layout.h"
#include "io/dcp/write/record.h"
#include "io/pickle/write/writer.h"

namespace mckpt::impl {

// torch.distributed.checkpoint.metadata.Metadata and what it is made of, each object as Python would pickle
// it: the class, an empty construction, a dict of fields. Used once.
class DcpLayout::MetadataWriter {
 public:
  MetadataWriter(const DcpLayout& layout, const std::function<void(std::string_view)>& take)
      : l_(layout),
        take_(take),
        key_slot_(l_.keys_.size(), PickleWriter::kNoSlot),
        object_slot_(l_.objects_.size(), PickleWriter::kNoSlot),
        file_slot_(l_.file_bytes_.size(), PickleWriter::kNoSlot),
        index_(l_.chunks_.size()) {
    list_chunks_by_key();
  }

  // The whole file. version "1.0.0" is the version of torch 2.9 and newer.
  void write() {
    begin("torch.distributed.checkpoint.metadata", "Metadata");
    field("state_dict_metadata");
    write_items();
    field("planner_data");
    write_paths();
    field("storage_data");
    write_places();
    field("storage_meta");
    p_.op(Op::kNone);
    field("version");
    p_.text("1.0.0");
    end();
    take_(p_.finish());
  }

 private:
  static constexpr const char* kModule = "torch.distributed.checkpoint.metadata";

  // The keys in the order of their first chunks, and the chunks of each, in order.
  void list_chunks_by_key() {
    std::vector<i64> count(l_.keys_.size());
    for (std::size_t c = 0; c < l_.chunks_.size(); c++) {
      i64& n = count[l_.chunks_[c].key];
      if (n == 0) order_.push_back(l_.chunks_[c].key);
      index_[c] = n++;
    }
    begin_.assign(count.size() + 1, 0);
    for (std::size_t k = 0; k < count.size(); k++) begin_[k + 1] = begin_[k] + count[k];
    by_key_.resize(l_.chunks_.size());
    for (std::size_t c = 0; c < l_.chunks_.size(); c++) {
      i64 first = begin_[l_.chunks_[c].key];
      by_key_[first + index_[c]] = static_cast<i64>(c);
    }
  }

  // Between begin() and end() come the fields of the object.
  void begin(std::string_view module, std::string_view name) {
    p_.class_name(module, name);
    p_.op(Op::kEmptyTuple), p_.op(Op::kNewobj);
    p_.op(Op::kEmptyDict), p_.op(Op::kMark);
  }
  void end() { p_.op(Op::kSetitems), p_.op(Op::kBuild); }

  // The name of a field: a text the first time, then its number in the memo.
  void field(std::string_view name) {
    for (auto& [text, slot] : fields_)
      if (text == name) return p_.repeated_text(name, slot);
    fields_.emplace_back(name, PickleWriter::kNoSlot);
    p_.repeated_text(name, fields_.back().second);
  }

  // torch.Size((...)), a call with one tuple; the loader compares sizes and offsets as this type.
  void size(std::span<const i64> numbers) {
    p_.class_name("torch", "Size");
    p_.tuple(numbers);
    p_.op(Op::kTuple1), p_.op(Op::kReduce);
  }

  // Hands over what is written so far, once it is a megabyte.
  void hand_over() {
    if (p_.pending_bytes() > 1 << 20) take_(p_.take());
  }

  // The name of a key: a text the first time, then its number in the memo.
  void key_name(i32 key) { p_.repeated_text(l_.key(key).name.text, key_slot_[key]); }

  // (dtype, layout, requires_grad, memory format, pin_memory), as torch writes it for an ordinary tensor.
  void write_properties(DType dtype) {
    u32& slot = properties_[dtype];
    // All tensors of a type share one object: every property but the type is the same.
    if (slot != 0) return p_.known(slot - 1);
    p_.class_name(kModule, "TensorProperties");
    p_.op(Op::kEmptyTuple), p_.op(Op::kNewobj);
    p_.op(Op::kMark);
    p_.class_name("torch", dtype_info(dtype).name);
    p_.class_name("torch.serialization", "_get_layout");
    p_.text("torch.strided"), p_.op(Op::kTuple1), p_.op(Op::kReduce);
    p_.boolean(false);  // requires_grad
    p_.class_name(kModule, "_MEM_FORMAT_ENCODING");
    p_.integer(0), p_.op(Op::kTuple1), p_.op(Op::kReduce);
    p_.boolean(false);  // pin_memory
    p_.op(Op::kTuple), p_.op(Op::kBuild);
    slot = p_.memoize() + 1;
  }

  // name: TensorStorageMetadata {properties, size, chunks}
  void write_tensor_item(i32 key) {
    key_name(key);
    begin(kModule, "TensorStorageMetadata");
    field("properties");
    write_properties(l_.key(key).dtype);
    field("size");
    size(l_.key(key).shape.dims());
    field("chunks");
    p_.op(Op::kEmptyList), p_.op(Op::kMark);
    std::size_t k = static_cast<std::size_t>(key);
    bool tuples = l_.key(key).uneven;
    for (i64 i = begin_[k]; i < begin_[k + 1]; i++) {
      Chunk c = l_.chunk(by_key_[i]);
      write_box(c.offsets, c.sizes, tuples);
    }
    p_.op(Op::kAppends);
    end();
  }

  // ChunkStorageMetadata {offsets, sizes}
  void write_box(std::span<const i64> offsets, std::span<const i64> sizes, bool tuples) {
    begin(kModule, "ChunkStorageMetadata");
    for (auto [name, numbers] : {std::pair("offsets", offsets), std::pair("sizes", sizes)}) {
      field(name);
      tuples ? p_.tuple(numbers) : size(numbers);
    }
    end();
  }

  // A tensor with a known value is one chunk without dimensions.
  void write_object_item(std::size_t o) {
    p_.repeated_text(l_.objects_[o].name.text, object_slot_[o]);
    if (!l_.objects_[o].dtype) {
      p_.class_name(kModule, "BytesStorageMetadata");
      p_.op(Op::kEmptyTuple), p_.op(Op::kNewobj);
      return;
    }
    begin(kModule, "TensorStorageMetadata");
    field("properties");
    write_properties(*l_.objects_[o].dtype);
    field("size"), size({});
    field("chunks");
    p_.op(Op::kEmptyList), p_.op(Op::kMark);
    write_box({}, {}, false);
    p_.op(Op::kAppends);
    end();
  }

  // state_dict_metadata: objects first, then the tensors in the order of their first chunks; or rank by rank,
  // the tensors that a rank is the first to store and then its objects.
  void write_items() {
    p_.op(Op::kEmptyDict), p_.op(Op::kMark);
    std::vector<std::size_t> objects = objects_by_rank();
    std::size_t next = 0;
    auto write_objects_before = [&](i32 rank) {
      for (; next < objects.size() && (!l_.objects_last_ || l_.objects_[objects[next]].rank < rank); next++)
        write_object_item(objects[next]);
    };
    for (i32 key : order_) {
      write_objects_before(l_.chunks_[by_key_[begin_[key]]].rank);
      write_tensor_item(key), hand_over();
    }
    write_objects_before(std::numeric_limits<i32>::max());
    p_.op(Op::kSetitems);
  }

  std::vector<std::size_t> objects_by_rank() const {
    std::vector<std::size_t> out(l_.objects_.size());
    std::iota(out.begin(), out.end(), std::size_t{0});
    if (l_.objects_last_)
      std::ranges::stable_sort(out, {}, [&](std::size_t o) { return l_.objects_[o].rank; });
    return out;
  }

  // The path of planner_data: the name cut at its dots. Keys that many paths have in common are written
  // once.
  void write_path(const DcpName& name) {
    p_.op(Op::kMark);
    std::size_t from = 0;
    for (std::size_t part = 0; part <= name.dots.size(); part++) {
      bool last = part == name.dots.size();
      std::size_t to = last ? name.text.size() : static_cast<std::size_t>(name.dots[part]);
      std::string_view key = std::string_view(name.text).substr(from, to - from);
      from = to + 1;
      if (std::ranges::find(name.numbers, static_cast<i32>(part)) != name.numbers.end())
        p_.integer(number_of(key));
      else if (last)
        p_.text(key);
      else
        p_.repeated_text(key, path_keys_.try_emplace(std::string(key), PickleWriter::kNoSlot).first->second);
    }
    p_.op(Op::kTuple);
  }

  // pre: the text is a number.
  static i64 number_of(std::string_view text) {
    i64 number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
  }

  // planner_data: None, or name -> path for objects and keys.
  void write_paths() {
    if (!l_.has_paths_) return p_.op(Op::kNone);
    p_.op(Op::kEmptyDict), p_.op(Op::kMark);
    if (!l_.objects_last_) write_object_paths();
    for (std::size_t k = 0; k < l_.keys_.size(); k++) {
      i32 key = static_cast<i32>(k);
      key_name(key), write_path(l_.key(key).name), hand_over();
    }
    if (l_.objects_last_) write_object_paths();
    p_.op(Op::kSetitems);
  }
  void write_object_paths() {
    for (std::size_t o = 0; o < l_.objects_.size(); o++)
      p_.known(object_slot_[o]), write_path(l_.objects_[o].name);
  }

  // _StorageInfo: where a record is.
  void write_place(i32 rank, i64 offset, i64 bytes) {
    begin("torch.distributed.checkpoint.filesystem", "_StorageInfo");
    field("relative_path");
    p_.repeated_text(dcp_file_name(rank), file_slot_[rank]);
    field("offset"), p_.integer(offset);
    field("length"), p_.integer(bytes);
    end();
  }

  // storage_data. The index of a chunk is its position among the chunks of its key; an object that is not a
  // tensor has none, and no offset.
  void write_places() {
    p_.op(Op::kEmptyDict), p_.op(Op::kMark);
    for (std::size_t o = 0; o < l_.objects_.size(); o++) {
      begin(kModule, "MetadataIndex");
      field("fqn"), p_.known(object_slot_[o]);
      field("index");
      if (l_.objects_[o].dtype)
        p_.integer(0), field("offset"), size({});
      else
        p_.op(Op::kNone);
      end();
      write_place(l_.objects_[o].rank, l_.objects_[o].offset, l_.objects_[o].bytes);
    }
    for (i64 i = 0; i < l_.chunk_count(); i++) {
      Chunk c = l_.chunk(i);
      begin(kModule, "MetadataIndex");
      field("fqn"), key_name(c.key);
      field("index"), p_.integer(index_[i]);
      field("offset"), size(c.offsets);
      end();
      write_place(c.rank, c.record_offset, c.frame->record_bytes());
      hand_over();
    }
    p_.op(Op::kSetitems);
  }

  const DcpLayout& l_;
  const std::function<void(std::string_view)>& take_;
  PickleWriter p_;
  // Texts that are repeated, with their slots of the memo: a dozen names of fields, and keys of paths, of
  // which there may be as many as parameters.
  std::vector<std::pair<std::string_view, u32>> fields_;
  NameMap<std::string, u32> path_keys_;
  std::vector<u32> key_slot_, object_slot_, file_slot_;
  std::unordered_map<DType, u32> properties_;  // slots, one more than they are: 0 is none
  std::vector<i32> order_;                     // keys
  std::vector<i64> begin_, by_key_;            // chunks of each key
  std::vector<i64> index_;                     // of a chunk among the chunks of its key
};

void DcpLayout::write_metadata(const std::function<void(std::string_view)>& take) const {
  MetadataWriter(*this, take).write();
}

}  // namespace mckpt::impl
