// DcpLayout: a DCP folder laid out before anything is written: keys, chunks with their place in the
// __R_0.distcp files, objects behind them, and the .metadata that describes them. Every size and offset is
// final when it is built, so that any number of threads can write the chunks' data in any order.
//
//   __0_0.distcp   [chunk of key 0][chunk of key 1][object]
//   __1_0.distcp   [chunk of key 0]
//                   ^ record_offset: frame->head() first, then the data
//
// Chunks are stored in columns: a third of a million of them take tens of megabytes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/int.h"
#include "core/base/text.h"
#include "core/items/dtype.h"
#include "core/items/shape.h"

namespace mckpt::impl {

class DcpTensorFrame;
class OutputFiles;
struct OutputFile;

// The name of an item and the dots in it that part the keys of the nested dicts it came from:
// "model.module.a.b" was {"model": {"module.a.b": ...}}, with a dot only at 5. Without them a loader could
// not tell which dots were in the keys.
struct DcpName {
  std::string text;
  std::vector<i32> dots;          // ascending
  std::vector<i32> numbers = {};  // keys between the dots, counted from 0, that are places in a list
};

// One tensor of the folder: `shape` is the shape of the whole.
struct DcpLayoutKey {
  DcpName name;
  DType dtype = DType::kBF16;
  Shape shape;
  bool uneven = false;  // the boxes of its chunks are plain tuples, as Megatron-FSDP writes them
};

// "__3_0.distcp": each rank gets one file.
inline std::string dcp_file_name(i64 rank) { return cat("__", rank, "_0.distcp"); }

// Filled by planning (one pass over ranks, ascending), then read by many: the plan takes chunk() and
// files(), the writer write_objects() and write_metadata().
class DcpLayout {
 public:
  explicit DcpLayout(i64 ranks);  // ranks that hold nothing get an empty file, as torch writes it
  DcpLayout(DcpLayout&&) noexcept;
  ~DcpLayout();

  void leave_out_paths() { has_paths_ = false; }  // planner_data is None, as in torch_dist
  // .metadata has the objects of a rank after its tensors, planner_data all at its end, and not at the front.
  void put_objects_last() { objects_last_ = true; }
  // Returns the number of the key. planner_data has the keys in the order in which they are added. pre:
  // each gets a chunk.
  i32 add_key(DcpLayoutKey key);
  // Appends a chunk to the rank's file; returns its number. Keys appear in .metadata in the order of their
  // first chunks, and the chunks of a key in the order in which they are added. pre: ranks ascend.
  i64 add_chunk(i32 key, i32 rank, std::span<const i64> offsets, std::span<const i64> sizes);
  // Append an object, pickled or in its archive, and a tensor without dimensions, whose one item `bytes` are.
  void add_object(DcpName name, i32 rank, std::string_view pickle);
  void add_archive(DcpName name, i32 rank, std::string archive);
  void add_value(DcpName name, i32 rank, DType dtype, std::span<const u8> bytes);
  // Reserves a record whose bytes somebody else writes. Returns its offset in the rank's file.
  i64 add_object_record(DcpName name, i32 rank, i64 bytes);

  // A chunk as the plan needs it; the spans point into the layout.
  struct Chunk {
    i32 key = 0, rank = 0;
    std::span<const i64> offsets, sizes;
    i64 record_offset = 0;  // in the rank's file
    const DcpTensorFrame* frame = nullptr;

    i64 data_offset() const;  // of the first element, in the rank's file
  };
  i64 chunk_count() const { return std::ssize(chunks_); }
  Chunk chunk(i64 index) const;
  const DcpLayoutKey& key(i32 index) const { return keys_[index]; }
  i64 key_count() const { return std::ssize(keys_); }

  std::vector<OutputFile> files() const;  // the data files with their final sizes, by rank
  // Writes what is there without any tensor's data: objects, and chunks of no items.
  void write_objects(OutputFiles& out) const;
  // Calls `take` with .metadata piece by piece. Equal layouts give equal bytes.
  void write_metadata(const std::function<void(std::string_view)>& take) const;

 private:
  struct Column {
    i32 key, rank, frame;
    i64 box;  // in boxes_: offsets, then sizes
    i64 record_offset;
  };
  struct Object {
    DcpName name;
    i32 rank;
    i64 offset, bytes;
    std::string record;            // empty where the bytes are somebody else's
    std::optional<DType> dtype{};  // of a tensor with a known value
  };
  class MetadataWriter;

  bool has_paths_ = true, objects_last_ = false;
  std::vector<DcpLayoutKey> keys_;
  std::vector<Column> chunks_;
  std::vector<i64> boxes_;
  std::vector<Object> objects_;
  std::vector<i64> file_bytes_;  // by rank
  std::vector<std::unique_ptr<const DcpTensorFrame>> frames_;
  std::unordered_map<std::string, i32> frame_of_;  // by type and sizes
};

}  // namespace mckpt::impl
