// Store: one checkpoint of any format, opened by its headers only. The tensors stand in columns, not in objects, so
// that a hundred thousand of them cost megabytes; bytes are read on demand.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "core/shape.h"

namespace mckpt {

// Where a piece of one tensor lies. A tensor that is not sharded has one chunk that is all of it.
struct Chunk {
  std::vector<i64> offsets;  // of the box in the global tensor
  std::vector<i64> sizes;    // a size may be 0
  i32 file = -1;             // index into Store::files()
  i32 rank = -1;             // the rank that wrote it, where the format says so
  i64 record_offset = 0;     // the bytes in the file that hold the chunk: the data themselves, or an archive around
  i64 record_bytes = 0;      // them that resolve() opens
};

// Where the items of a chunk lie, once its own header (if any) is read.
struct ChunkData {
  i32 file = -1;
  i64 offset = 0;            // of the chunk's first item
  DType dtype = DType::kU8;  // as stored
  std::vector<i64> strides;  // in items; empty: row-major
  // When the bytes lie deflated in a zip record, offset is meaningless and read_chunk is the way to them.
  bool compressed = false;
};

// Something that is not a tensor: the args, an iteration number, a scheduler's field, a random state.
struct Object {
  std::string name;
  i32 file = -1;
  i64 record_offset = 0;
  i64 record_bytes = 0;
  std::string summary;  // one line, such as "int 10" or "Namespace, 312 fields"; empty until it is read
};

struct File {
  std::string path;  // relative to Store::root(); "" when the root itself is the file
  i64 bytes = -1;    // as found on disk; -1: it is not there
};

// What is wrong or odd, found while looking. Openers collect what leaves the rest readable, and throw what does not.
struct Finding {
  Code code;
  std::string tensor, file, message, help;
  i64 offset = -1;
  i32 rank = -1;
  bool warning = false;  // true: odd, but nothing is lost
};

class PickleValue;  // io/pickle.h

class Store {
 public:
  virtual ~Store() = default;

  const std::string& root() const { return root_; }              // what was opened, after following a tracker file
  const std::string& format() const { return format_; }          // "safetensors", "torch.save zip", "DCP fsdp_dtensor", ...
  const std::vector<File>& files() const { return files_; }
  const std::vector<Object>& objects() const { return objects_; }
  const std::vector<Finding>& findings() const { return findings_; }
  // Facts worth a line in `inspect`: "iteration" -> "10", "generator" -> "pt".
  const std::vector<std::pair<std::string, std::string>>& facts() const { return facts_; }

  // Tensors in the order of the file; `by_name()` is their natural order.
  virtual i64 tensor_count() const = 0;
  virtual std::string_view name(i64 tensor) const = 0;
  virtual DType dtype(i64 tensor) const = 0;
  virtual Shape shape(i64 tensor) const = 0;
  virtual i64 chunk_count(i64 tensor) const = 0;
  virtual Chunk chunk(i64 tensor, i64 index) const = 0;
  // Opens the chunk's own header and checks it against the table. Thread-safe. Throws.
  virtual ChunkData resolve(i64 tensor, i64 index) const = 0;

 protected:
  std::string root_, format_;
  std::vector<File> files_;
  std::vector<Object> objects_;
  std::vector<Finding> findings_;
  std::vector<std::pair<std::string, std::string>> facts_;
};

// Opens whatever lies at path: a file or a folder of any format. Throws kNotFound, or an error that says what was
// found there and what was expected.
std::unique_ptr<Store> open_store(const std::string& path);

}  // namespace mckpt
