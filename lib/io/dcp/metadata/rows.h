// The small records of a .metadata pickle, stored as rows while the interpreter meets them. Private to
// io/dcp.
//
// A .metadata of 100,000 tensors has more than a million small Python objects. Building them would take
// hundreds of megabytes; instead the interpreter hands over each record when its BUILD opcode is met, and
// gets back a number that represents the object from then on:
//
//   ChunkStorageMetadata {offsets: (6, 0), sizes: (4, 4)}   ->   row 1 of `boxes`: 6 0 4 4
//   list of chunks [.., ..]                                 ->   refers to chunks by row
//
// Linker (metadata.cc) joins the rows afterwards; LoadingCheck (loading.cc) reads the indexes too.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/name_hash.h"
#include "io/dcp/metadata/fields.h"
#include "io/dcp/metadata/metadata.h"
#include "io/pickle/pickle.h"
#include "io/pickle/room.h"

namespace mckpt::impl {

// Numbers for texts: equal texts, equal numbers, counted from 0. The texts are not copied and must outlive
// the table.
class NameTable {
 public:
  u32 add(std::string_view text);
  // For a text of a pickle: stores the number beside the text itself, so that only the first of many
  // references to it is looked up.
  u32 add(PickleValue text);
  i64 size() const { return std::ssize(texts_); }
  i64 text_bytes() const { return text_bytes_; }  // of all of them
  std::string_view operator[](u32 number) const { return texts_[number]; }

 private:
  struct Slot {
    u32 hash, number_and_one;  // 0: free
  };
  std::size_t slot_of(std::string_view text, u32 hash) const;
  void grow();

  std::vector<std::string_view> texts_;
  i64 text_bytes_ = 0;
  std::vector<Slot> slots_;  // open addressing
};

// Turns each record into a row of one of the columns below and represents it by that row. An object of any
// other class is left to the interpreter. pre: the pickle outlives this, as texts are not copied.
class DcpRows final : public PickleVisitor {
 public:
  enum class Kind : u8 { kOther, kTensor, kBytes, kChunk, kProperties, kIndex, kStorage, kPlan };
  // By the class's own name, whatever module defines it: forks and Megatron have their own copies.
  static Kind kind_of(const PickleClass& type);
  // The row of an object of that kind. Throws kBadMetadata when it is something else; `what` and `name` are
  // for the message.
  static i64 row_of(PickleValue object, Kind kind, std::string_view what, std::string_view name = {}) {
    std::optional<u64> number = object.row();
    if (!number || *number >> kKindShift != static_cast<u64>(kind)) throw_no_row(object, what, name);
    return static_cast<i64>(*number & ((u64{1} << kKindShift) - 1));
  }

  explicit DcpRows(i64 pickle_bytes);
  DcpRows(const DcpRows&) = delete;
  DcpRows& operator=(const DcpRows&) = delete;
  std::optional<u64> build(const PickleObject& object, PickleValue state) override;
  std::optional<u64> build(const PickleClass& type, std::span<const PickleValue> state) override;

  // "ChunkStorageMetadata.strides": the fields of records that nobody here knows, for people.
  std::vector<std::string> unknown_fields() const;

  struct Index {
    u32 name;
    bool has_offset;
    i64 hint;  // position in the list of chunks; -1: None
  };

  RaggedRows<i64> boxes;      // of a chunk: its offsets, then its sizes
  std::vector<DType> dtypes;  // of tensors
  RaggedRows<i64> dims;
  RaggedRows<u32> chunks;  // rows of boxes
  NameTable names;         // of everything that an index names
  std::vector<Index> indexes;
  RaggedRows<i64> index_offsets;
  std::vector<DcpRecord> records;
  std::vector<std::string> files, packings;
  PickleRoom room;  // rows here take of it, and rows of DcpMetadata do

 private:
  // A record is represented by its row, with the kind above it.
  static constexpr int kKindShift = 48;
  static u64 tagged(Kind kind, u64 row) { return static_cast<u64>(kind) << kKindShift | row; }

  [[noreturn]] static void throw_no_row(PickleValue object, std::string_view what, std::string_view name);

  std::size_t append_integers(std::vector<i64>& out, PickleValue value, std::string_view what);
  static u64 dtype_row(PickleValue dtype);  // the row of properties is the data type itself
  u64 build_chunk();
  u64 build_tensor();
  u64 build_index();
  u64 build_record();
  [[noreturn]] void throw_zeroed_path(std::string_view path) const;
  i32 file_number(PickleValue path);
  i32 packing_number(PickleValue descriptors);

  FieldFinder tensor_, chunk_, properties_, index_, storage_;
  std::vector<PickleValue> entries_;  // of a dict
  NameMap<std::string, i32> file_numbers_;
  struct SeenPath {
    PickleValue path;  // a text; None: nothing is here
    i32 file = -1;
  };
  std::array<SeenPath, 256> seen_;  // by the address of the text
};

}  // namespace mckpt::impl
