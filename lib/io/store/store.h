// Store: one checkpoint of any format, opened by its headers only. The tensors stand in columns, not in
// objects, so that a hundred thousand of them cost megabytes; bytes are read on demand, by TensorReader.
//
//   tensor "w" [8, 4]  = chunk 0: box [0, 0] + [5, 4], file 0    -- resolve -->  file 0, byte 4160, float32
//                        chunk 1: box [5, 0] + [3, 4], file 1    -- resolve -->  file 1, byte 4160, float32
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/int.h"
#include "core/items/dtype.h"
#include "io/store/checksum.h"
#include "io/store/finding.h"

namespace mckpt::impl {

class ByteSource;  // io/file/file.h
class Shape;

// Where a piece of one tensor lies. A tensor that is not sharded has one chunk that is all of it. The spans
// point into the store.
struct Chunk {
  std::span<const i64> offsets;  // of the box in the global tensor
  std::span<const i64> sizes;    // a size may be 0
  i32 file = -1;                 // index into Store::files()
  i32 rank = -1;                 // the rank that wrote it, where the format says so
  // The bytes of the file that hold the chunk: the data themselves, or an archive that resolve() opens.
  i64 record_offset = 0;  // -1: they lie in many places
  i64 record_bytes = 0;
  bool replica = false;  // an earlier chunk of the tensor is the same box: readers skip this one
};

// Where the items of a chunk lie, once its own header (if any) is read.
struct ChunkData {
  i32 file = -1;
  i64 offset = 0;              // of the chunk's first item
  DType dtype = DType::kU8;    // as stored: equal to the tensor's, or resolve() throws
  std::vector<i64> strides{};  // in items, one a dimension; empty: row-major
  bool big_endian = false;     // the bytes of each element are to be swapped
  // The stored sum of the bytes that the chunk lies in, where the format keeps one and they lie as they are.
  std::optional<Checksum> checksum{};
  // Where the items lie in memory, because the file has them compressed: `offset` counts in here. Else null.
  std::shared_ptr<const ByteSource> unpacked{};
};

// Something that is not a tensor: the args, an iteration number, a scheduler's field, a random state.
struct Object {
  std::string name;
  i32 file = -1;
  i64 record_offset = 0;
  i64 record_bytes = 0;
  std::string summary;  // "int 10" or "Namespace, 312 fields"; empty where only object() knows
};

struct StoreFile {
  std::string path;  // relative to Store::root(); "" when the root itself is the file
  i64 bytes = -1;    // as found on disk; -1: it is not there
};

class PickleValue;  // io/pickle/value.h

class Store {
 public:
  virtual ~Store() = default;

  const std::string& root() const { return root_; }  // what was opened, after following a tracker file
  // As a person calls it: "safetensors", "torch.save zip", "DCP fsdp_dtensor".
  const std::string& format() const { return format_; }
  i64 ranks() const { return ranks_; }  // that wrote it, where the format says so; 1 otherwise
  const std::vector<StoreFile>& files() const { return files_; }
  const std::vector<Object>& objects() const { return objects_; }
  const std::vector<Finding>& findings() const { return findings_; }
  // Facts worth a line in `inspect`: "iteration" -> "10", "generator" -> "pt".
  const std::vector<std::pair<std::string, std::string>>& facts() const { return facts_; }
  void add_fact(std::string name, std::string value) {
    facts_.emplace_back(std::move(name), std::move(value));
  }

  // Tensors in the order of the file; names and dimensions live as long as the store.
  virtual i64 tensor_count() const = 0;
  virtual std::string_view name(i64 tensor) const = 0;
  virtual DType dtype(i64 tensor) const = 0;
  virtual std::span<const i64> dims(i64 tensor) const = 0;
  virtual i64 chunk_count(i64 tensor) const = 0;
  virtual Chunk chunk(i64 tensor, i64 index) const = 0;
  // Opens the chunk's own header and checks it against the table. Thread-safe. Throws.
  virtual ChunkData resolve(i64 tensor, i64 index) const = 0;

  // The value of objects()[index], or null where the format has none to show. Throws.
  virtual std::shared_ptr<const PickleValue> object(i64 /*index*/) const { return nullptr; }
  // Calls `visit` for everything the format keeps a CRC-32 of, in the order of the files. Throws.
  virtual void each_checksum(const std::function<void(const Checksum&)>& /*visit*/) const {}
  // What only the format can judge and opening leaves out because it takes long: names that belong together,
  // objects that read. Nothing where the format has no such checks.
  virtual std::optional<std::vector<Finding>> check(int /*threads*/) const { return std::nullopt; }

  Shape shape(i64 tensor) const;

 protected:
  std::string root_, format_;
  i64 ranks_ = 1;
  std::vector<StoreFile> files_;
  std::vector<Object> objects_;
  std::vector<Finding> findings_;
  std::vector<std::pair<std::string, std::string>> facts_;
};

// The path of a file of the store, as messages show it: root, or root/path. For no file (-1): root.
std::string file_path(const Store& store, i32 file);

// What a column has room for: the path inside the root, or the root's own last part. For no file (-1): "".
std::string_view file_label(const Store& store, i32 file);

// Whether the object is a file of its own, beside those of the tensors.
bool is_file(const Store& store, const Object& object);

// Zeros for the offsets of a chunk that is a whole tensor. pre: rank <= Shape::kMaxRank.
std::span<const i64> zero_offsets(std::size_t rank);

// All tensors, ordered by name as a person counts: layers.2 before layers.10.
std::vector<i64> natural_order(const Store& store);

// The tensor of that name, or -1.
i64 find_tensor(const Store& store, std::string_view name);

// The index of an item that is counted in row-major order.
std::vector<i64> item_index(i64 item, std::span<const i64> dims);

// Opens whatever lies at path: a file or a folder of any format. Throws kNotFound, or an error that says what
// was found there and what was expected.
std::unique_ptr<Store> open_store(const std::string& path);

// Whether a file of this name is one of torch.save: .pt, .pth, .bin, .ckpt.
bool has_torch_suffix(std::string_view name);

// What open_store() chooses from; each throws when the path is not of its format.
std::unique_ptr<Store> open_safetensors_file(const std::string& path);
std::unique_ptr<Store> open_safetensors_folder(const std::string& path);
std::unique_ptr<Store> open_torch_file(const std::string& path);  // .pt: zip or legacy stream
std::unique_ptr<Store> open_torch_folder(
    const std::string& path);  // of ranks, of shards, or of separate files
std::unique_ptr<Store> open_hdf5_file(const std::string& path);
std::unique_ptr<Store> open_dcp(const std::string& path);           // a folder with .metadata
std::unique_ptr<Store> open_megatron_run(const std::string& path);  // a folder of mp_rank_* folders

}  // namespace mckpt::impl
