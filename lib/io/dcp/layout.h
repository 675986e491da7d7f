// DcpLayout: what a torch.distributed.checkpoint folder will hold, laid out before anything is written: keys,
// chunks with their place in the __R_0.distcp files, objects behind them, and the .metadata that says so.
// Chunks are stored in columns: a third of a million of them takes tens of megabytes.
#pragma once

#include <functional>
#include <memory>
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

// The name of an item and, in it, the dots that part the keys of the nested dictionaries it came from:
// "model.module.a.b" was {"model": {"module.a.b": ...}}.
struct DcpName {
  std::string text;
  std::vector<i32> dots;  // ascending
  // Of the keys between them, counted from 0, those that are numbers: the places of a list.
  std::vector<i32> numbers = {};
};

struct DcpLayoutKey {
  DcpName name;
  DType dtype = DType::kBF16;
  Shape shape;
};

// "__3_0.distcp"
inline std::string dcp_file_name(i64 rank) { return cat("__", rank, "_0.distcp"); }

class DcpLayout {
 public:
  // One file a rank.
  explicit DcpLayout(i64 ranks);
  DcpLayout(DcpLayout&&) noexcept;
  ~DcpLayout();

  // planner_data is None, as torch_dist writes it.
  void leave_out_paths() { has_paths_ = false; }
  // Else it has the keys in the order in which they are added. pre: each gets a chunk.
  i32 add_key(DcpLayoutKey key);
  // Appends a chunk to the rank's file. Keys appear in .metadata in the order of their first chunks, and the
  // chunks of a key in the order in which they are added. pre: ranks ascend.
  i64 add_chunk(i32 key, i32 rank, std::span<const i64> offsets, std::span<const i64> sizes);
  // pre: the rank's chunks are all there.
  void add_object(DcpName name, i32 rank, std::string_view pickle);
  // The same for a record whose bytes somebody else puts there. Returns where, in the rank's file.
  i64 add_object_record(DcpName name, i32 rank, i64 bytes);

  struct Chunk {
    i32 key = 0, rank = 0;
    std::span<const i64> offsets, sizes;
    i64 record_offset = 0;  // in the rank's file
    const DcpTensorFrame* frame = nullptr;

    i64 data_offset() const;
  };
  i64 chunk_count() const { return std::ssize(chunks_); }
  Chunk chunk(i64 index) const;
  const DcpLayoutKey& key(i32 index) const { return keys_[static_cast<std::size_t>(index)]; }
  i64 key_count() const { return std::ssize(keys_); }

  // The data files; those of ranks that hold nothing are there, and empty.
  std::vector<OutputFile> files() const;
  // Writes what is there without any tensor's data: objects, and chunks of no items.
  void write_objects(OutputFiles& out) const;
  // Calls `take` with .metadata piece by piece. The bytes depend on what was added alone.
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
    std::string record;  // empty where the bytes are somebody else's
  };
  class MetadataWriter;

  bool has_paths_ = true;
  std::vector<DcpLayoutKey> keys_;
  std::vector<Column> chunks_;
  std::vector<i64> boxes_;
  std::vector<Object> objects_;
  std::vector<i64> file_bytes_;  // by rank
  std::vector<std::unique_ptr<const DcpTensorFrame>> frames_;
  std::unordered_map<std::string, i32> frame_of_;  // by type and sizes
};

}  // namespace mckpt::impl
