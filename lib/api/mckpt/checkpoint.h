// mckpt::Checkpoint: a checkpoint of any format, opened by its headers: a Hugging Face folder, a safetensors
// or .pt file, a folder of Megatron-FSDP, torch_dist or FSDP2, rank files, an HDF5 archive.
//
//   mckpt::Checkpoint ckpt = mckpt::open("Qwen3-0.6B");
//   for (const std::string& name : ckpt.names("*.mlp.*")) ...
//   mckpt::Tensor t = ckpt.tensor("lm_head.weight");          bfloat16 [151936, 1024]
//   std::vector<std::byte> rows = ckpt.read("lm_head.weight", "[0:16]");
//
// Opening reads no tensor data. Pickles are read as data: nothing in them is executed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mckpt/export.h"
#include "mckpt/finding.h"
#include "mckpt/options.h"
#include "mckpt/statistics.h"

namespace mckpt {

// A tensor, or the part of it that a slice chooses.
struct Tensor {
  std::string name{};
  std::string dtype{};  // as torch spells it, without "torch."
  std::vector<std::int64_t> shape{};
  std::int64_t bytes = 0;  // of the contiguous little-endian form
};

// A stored piece of a tensor: a box of the whole tensor, and where its record is.
struct TensorChunk {
  std::vector<std::int64_t> offsets{}, sizes{};
  std::string file{};        // relative to the checkpoint
  std::int64_t offset = -1;  // of the record in the file; -1: the bytes are in many places
  std::int64_t bytes = 0;    // of the record
  int rank = -1;             // the rank that wrote it, if the format says so
  bool replica = false;      // an earlier chunk of the tensor is the same box
};

// Where a file has all bytes of a tensor, one after the other, as read() returns them.
struct TensorStretch {
  std::string file{};  // its path
  std::int64_t offset = 0;
};

// Something that is not a tensor, such as the args or an iteration number.
struct Object {
  std::string name{}, file{}, summary{};  // summary: "int 10", "Namespace, 312 fields"
};

// An open checkpoint. Movable; const functions may be called from all threads. The functions that read data
// throw Error for what cannot be read.
class MCKPT_API Checkpoint {
 public:
  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;
  ~Checkpoint();

  const std::string& path() const;  // what was opened, behind a tracker file
  std::string_view format() const;  // for people, a literal: "safetensors", "DCP fsdp_dtensor"
  std::int64_t ranks() const;       // that wrote it; 1 if the format does not say so
  // Facts of the format: {"iteration", "10"}.
  std::vector<std::pair<std::string, std::string>> facts() const;
  // {"shard": ..., "packing": ...} as `mckpt inspect --json` has them (docs/json.md), of what is on disk.
  std::string writer_json() const;
  std::vector<Finding> findings() const;
  std::vector<Object> objects() const;
  // The value as a literal of Python, if it is made of numbers, texts, lists and the like. NaN is nan.
  std::optional<std::string> object_literal(std::string_view name) const;

  // The names of all tensors, or of those that the glob matches as a whole, layers.2 before layers.10. Throws
  // for a glob that matches none.
  std::vector<std::string> names(std::string_view glob = "") const;
  std::int64_t tensor_count() const;
  // The names of all tensors, by file and by the place of their first bytes: a disk reads them fastest so.
  std::vector<std::string> names_in_file_order() const;
  bool has(std::string_view name) const;
  // Each throws if there is no tensor of that name, with the nearest name.
  Tensor tensor(std::string_view name) const;
  std::vector<TensorChunk> chunks(std::string_view name) const;

  // The items that a slice chooses. Slices are Python's, without steps: "[0:4, :3]", "[-1]"; "" is the whole
  // tensor.
  Tensor sliced(std::string_view name, std::string_view slice) const;
  // The items of the slice as contiguous little-endian bytes, however the tensor is sharded.
  std::vector<std::byte> read(std::string_view name, std::string_view slice = "") const;
  // read() into memory of exactly sliced(name, slice).bytes bytes.
  void read_into(std::string_view name, std::string_view slice, std::span<std::byte> to) const;

  // A place from which a program can map the tensor into its memory; none if the tensor is stored otherwise.
  std::optional<TensorStretch> stretch(std::string_view name) const;

  // SHA-256 of the bytes that read() returns; equal values have equal digests in any format and sharding.
  std::string digest(std::string_view name) const;
  Statistics statistics(std::string_view name, int threads = 1) const;
  Statistics slice_statistics(std::string_view name, std::string_view slice) const;  // of what read() returns

 private:
  struct State;
  friend struct CheckpointAccess;
  explicit Checkpoint(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Opens a file or a folder of any format.
MCKPT_API Checkpoint open(const std::string& path, const OpenOptions& options = {});
// One rank's file with the shapes that the rank had in memory; any other checkpoint as open() opens it.
MCKPT_API Checkpoint open_local(const std::string& path, const OpenOptions& options = {});
// A view: a sharded checkpoint under the names and boxes of fsdp_dtensor, whatever its format on disk. Each
// function of the view reads through to the files.
MCKPT_API Checkpoint open_as_fsdp(const std::string& path, const SourceOptions& options = {});

}  // namespace mckpt
