// A DCP folder that is open, as a store (io/store/store.h). Private to io/dcp.
//
// It keeps the columns of .metadata and opens data files on demand: a chunk's name, box and record come
// from memory, resolve() and object() read the record's own header.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <vector>

#include "io/dcp/check/check.h"
#include "io/dcp/keys/dialect.h"
#include "io/dcp/metadata/metadata.h"
#include "io/dcp/packing.h"
#include "io/dcp/run/sizes.h"
#include "io/store/open/dcp_parts.h"
#include "io/store/store.h"
#include "io/store/store_files.h"

namespace mckpt::impl {

class Findings;
class Folder;
struct Spelling;

// Made by open_dcp(). Safe for many threads once it is made.
class DcpStore final : public Store {
 public:
  // One folder is the part "".
  DcpStore(const std::string& path, DcpParts parts, const OpenOptions& opening);

  DcpDialect dialect() const { return dialect_; }

  i64 tensor_count() const override { return meta_.tensor_count(); }
  std::string_view name(i64 tensor) const override { return meta_.name(tensor); }
  DType dtype(i64 tensor) const override { return meta_.dtypes[tensor]; }
  std::span<const i64> dims(i64 tensor) const override { return meta_.dims[tensor]; }
  i64 chunk_count(i64 tensor) const override { return static_cast<i64>(meta_.records[tensor].size()); }
  Chunk chunk(i64 tensor, i64 index) const override;
  ChunkData resolve(i64 tensor, i64 index) const override;
  std::shared_ptr<const PickleValue> object(i64 index) const override;
  void each_checksum(const std::function<void(const Checksum&)>& visit) const override;
  std::optional<std::vector<Finding>> check(int threads) const override;
  RunSizes run_sizes_found() const;
  // See dcp_damage() in dcp.h.
  std::vector<Finding> damage(CheckedPart part) const;
  i64 alike_files() const;
  // See dcp_carries_values() in dcp.h.
  bool carries_values() const { return carries_values_; }
  // See dcp_saved_order() in dcp.h.
  std::vector<std::string_view> saved_order() const;

 private:
  // Steps of opening, in this order (dcp.cc).
  void read_metadata(const Folder& folder);
  DcpMetadata read_part(const Folder& folder, std::size_t part);
  std::string in_part(std::size_t part, std::string_view name) const;
  void list_files(const Folder& folder);
  void add_objects(const Folder& folder);
  void find_dialect(const Folder& folder);
  void look_at_torch_dist(const Folder& folder, bool has_marker);
  void collect_findings();
  void collect_facts();
  Spelling spelling_of_names() const;

  // Calls fn(record, as torch.save wrote it); what it throws gets the file and the place in it. `most_bytes`:
  // of a record that is packed.
  template <typename Fn>
  auto with_record(const DcpRecord& record, i64 most_bytes, Fn&& fn) const
      -> decltype(fn(std::declval<const ByteSource&>()));
  DcpRecord record_of(i64 object) const;
  class UnpackedChunk;
  // Checks that read data (store.cc).
  void check_objects(int threads, Findings& findings) const;
  bool same_bytes(const DcpRecord& a, const DcpRecord& b) const;
  void check_copies(std::vector<Finding>& out) const;

  // Calls visit(folder of a part), and puts the part before the names of files in what it returns.
  std::vector<Finding> of_parts(const std::function<std::vector<Finding>(const Folder&)>& visit) const;

  DcpParts parts_;
  DcpMetadata meta_;
  // One .metadata names all that the files contain; false for the indexes of single ranks.
  bool gathered_ = false;
  bool safetensors_inside_ = false;  // its tensors cannot be read
  DcpDialect dialect_ = DcpDialect::kPlain;
  // The rank that wrote each file, by its name; -1: the name does not say.
  std::vector<i32> file_ranks_;
  std::optional<StoreFiles> open_files_;
  UnpackedRecords unpacked_;
  mutable std::atomic<bool> carries_values_ = false;  // set while records are read
};

}  // namespace mckpt::impl
