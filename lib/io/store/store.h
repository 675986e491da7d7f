// Store: one checkpoint of any format, opened by its headers only. Everything that mckpt does with a
// checkpoint it does through this interface; formats differ below it.
//
//   tensor "w" [8, 4]  = chunk 0: box [0, 0] + [5, 4], file 0    -- resolve -->  file 0, byte 4160, float32
//                        chunk 1: box [5, 0] + [3, 4], file 1    -- resolve -->  file 1, byte 4160, float32
//
// Tensors are numbers from 0 on, and their facts are in columns and not in objects, so that a hundred
// thousand tensors cost megabytes. Opening reads headers (a safetensors header, .metadata); resolve() reads
// the header of one chunk, if the format has one; data are read on demand by TensorReader
// (io/values/tensor_reader.h).
//
// A fault of a part of the checkpoint is a Finding, and the rest can be used; a fault that makes the
// checkpoint unreadable is thrown.
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
#include "io/file/open_options.h"
#include "io/store/checksum.h"
#include "io/store/driver.h"
#include "io/store/finding.h"

namespace mckpt::impl {

class ByteSource;  // io/file/file.h
class Shape;

// A piece of one tensor, and where it is stored. A tensor that is not sharded is one chunk. The spans point
// into the store.
struct Chunk {
  std::span<const i64> offsets;  // of the box in the global tensor
  std::span<const i64> sizes;    // a size may be 0
  i32 file = -1;                 // index into Store::files()
  i32 rank = -1;                 // the rank that wrote it, if the format says so
  // The bytes of the file that hold the chunk: the data themselves, or an archive that resolve() opens.
  i64 record_offset = 0;  // -1: the bytes are in many places
  i64 record_bytes = 0;
  bool replica = false;  // an earlier chunk of the tensor is the same box: readers skip this one
};

// Where and how the items of a chunk are stored: what resolve() finds out.
struct ChunkData {
  i32 file = -1;
  i64 offset = 0;              // of the chunk's first item
  DType dtype = DType::kU8;    // as stored: equal to the tensor's, or resolve() throws
  std::vector<i64> strides{};  // in items, one for each dimension; empty: row-major
  bool big_endian = false;     // the bytes of each element are to be swapped
  // The stored sum of the record that the chunk is in, if the format stores one and the record is not
  // compressed.
  std::optional<Checksum> checksum{};
  // The items as bytes that are not bytes of the file, because the file has them compressed: `offset` counts
  // in here. Otherwise null.
  std::shared_ptr<const ByteSource> unpacked{};
  // The sums of the records from which `unpacked` is computed.
  std::vector<Checksum> beneath{};
};

class Store;

// Adds all sums of a chunk, and the sums of all chunks of a tensor, as far as they are stored.
void add_sums(ChunkData&& data, std::vector<Checksum>& to);
void add_sums(const Store& store, i64 tensor, std::vector<Checksum>& to);

// Something that is not a tensor: the args, an iteration number, a scheduler's field, a random state.
struct Object {
  std::string name;
  i32 file = -1;
  i64 record_offset = 0;
  i64 record_bytes = 0;
  std::string summary;            // "int 10" or "Namespace, 312 fields"; empty if only object() knows
  std::string_view packing = {};  // the extensions that packed the record; the store has the text
};

// A file of the checkpoint, whether it is there or only named by an index.
struct StoreFile {
  std::string path;  // relative to Store::root(); "" when the root itself is the file
  i64 bytes = -1;    // as found on disk; -1: the file does not exist
};

class PickleValue;      // io/pickle/value.h
class UnroundedValues;  // io/store/unrounded.h

// Where a store comes from, as far as conversions do something else for it. A view has its source's.
struct StoreTraits {
  bool of_verl = false;  // a save that verl lists: its weights are a training run's, whatever their format
  bool packed = false;   // some records are packed by extensions
  bool says_rank_order = true;  // false: files of ranks have pieces, and do not say which rank each is of
};

// A tensor is an index in [0, tensor_count()). The functions about tensors and chunks may be called from all
// threads.
class Store {
 public:
  virtual ~Store() = default;

  const std::string& root() const { return root_; }  // what was opened, after following a tracker file
  // How its files are opened, and the files of the same folder that belong to no store.
  const OpenOptions& opening() const { return opening_; }
  Format format() const { return format_; }
  const Driver& driver() const { return driver_of(format_); }  // what is done differently for the format
  i64 ranks() const { return ranks_; }  // the number of ranks that wrote it; 1 if the format does not say so
  const std::vector<StoreFile>& files() const { return files_; }
  const std::vector<Object>& objects() const { return objects_; }
  const std::vector<Finding>& findings() const { return findings_; }
  // Facts worth a line in `inspect`: "iteration" -> "10", "generator" -> "pt".
  const std::vector<std::pair<std::string, std::string>>& facts() const { return facts_; }
  void add_fact(std::string name, std::string value) {
    facts_.emplace_back(std::move(name), std::move(value));
  }
  StoreTraits traits{};

  // Tensors in the order of the file; names and dimensions live as long as the store.
  virtual i64 tensor_count() const = 0;
  virtual std::string_view name(i64 tensor) const = 0;
  virtual DType dtype(i64 tensor) const = 0;
  virtual std::span<const i64> dims(i64 tensor) const = 0;
  virtual i64 chunk_count(i64 tensor) const = 0;
  virtual Chunk chunk(i64 tensor, i64 index) const = 0;
  // Opens the chunk's own header, if it has one, and checks it against the table. Throws what is wrong with
  // it.
  virtual ChunkData resolve(i64 tensor, i64 index) const = 0;

  // The value of objects()[index], or null if the format has none to show. Throws if it cannot be read.
  virtual std::shared_ptr<const PickleValue> object(i64 /*index*/) const { return nullptr; }
  // Calls `visit` for everything that the format stores a CRC-32 of, in the order of the files. Throws if a
  // header with such sums cannot be read.
  virtual void each_checksum(const std::function<void(const Checksum&)>& /*visit*/) const {}
  // Checks that only the format can make, and that opening leaves out because they take long: that names fit
  // together, that objects can be read. nullopt: the format has no such checks.
  virtual std::optional<std::vector<Finding>> check(int /*threads*/) const { return std::nullopt; }
  // The values of a view before it rounds them; null: the store rounds none. A view of such a view rounds
  // nothing itself, and has none unless it says so.
  virtual const UnroundedValues* unrounded() const { return nullptr; }

  Shape shape(i64 tensor) const;

 protected:
  // For a view of `source`: root, opening, format, ranks, files and facts become the source's. Objects
  // and findings do not.
  void describe_as(const Store& source);

  std::string root_;
  OpenOptions opening_;
  Format format_{};
  i64 ranks_ = 1;
  std::vector<StoreFile> files_;
  std::vector<Object> objects_;
  std::vector<Finding> findings_;
  std::vector<std::pair<std::string, std::string>> facts_;
};

// The path of a file of the store, as messages show it: root, or root/path. For no file (-1): root.
std::string file_path(const Store& store, i32 file);

// A short name of a file, for a column: the path inside the root, or the root's last part. For no file (-1):
// "".
std::string_view file_label(const Store& store, i32 file);

// Whether the object is a file of its own, beside the files of the tensors.
bool is_file(const Store& store, const Object& object);

// Zeros for the offsets of a chunk that is a whole tensor. pre: rank <= Shape::kMaxRank.
std::span<const i64> zero_offsets(std::size_t rank);

// All tensors, ordered by name as a person counts: layers.2 before layers.10.
std::vector<i64> natural_order(const Store& store);
// All tensors, by file and by the place of each tensor's first bytes: a disk reads them fastest so.
std::vector<i64> file_order(const Store& store);

// The tensor of that name, or -1.
i64 find_tensor(const Store& store, std::string_view name);

// The index of an item from its row-major number: item 9 of [2, 3, 4] is [0, 2, 1].
std::vector<i64> item_index(i64 item, std::span<const i64> dims);

// Opens a file or a folder of any format. Throws kNotFound, or an error that says what was found at the path
// and what was expected.
std::unique_ptr<Store> open_store(const std::string& path, const OpenOptions& opening = {});

// Readers that open_store() chooses from and that others ask for by name; each throws when the path is not of
// its format. open_torch_file() takes a .pt file, zip or legacy stream; open_torch_folder() a folder of
// ranks, of shards, or of separate files. The table of all is io/store/open/drivers.inc.
std::unique_ptr<Store> open_safetensors_file(const std::string& path, const OpenOptions& opening);
std::unique_ptr<Store> open_safetensors_folder(const std::string& path, const OpenOptions& opening);
std::unique_ptr<Store> open_torch_file(const std::string& path, const OpenOptions& opening);
std::unique_ptr<Store> open_torch_folder(const std::string& path, const OpenOptions& opening);

}  // namespace mckpt::impl
