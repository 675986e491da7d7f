// Reads the records of a DCP folder: where a chunk's data are, what an object contains, and what is wrong
// there.
//
//   resolve(tensor, chunk)
//     DcpMetadata  -> record: file 3, bytes [4096, 9000)
//     RecordSource -> the archive's two ends
//     read_dcp_item -> data at byte 512 of the record, strides, CRC-32
//     ChunkData    =  file 3, offset 4608
#include "io/dcp/store.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "io/dcp/check/integrity.h"
#include "io/dcp/check/loading.h"
#include "io/dcp/check/safetensors_inside.h"
#include "io/dcp/dcp.h"
#include "io/dcp/item.h"
#include "io/dcp/run/args.h"
#include "io/dcp/run/run_config.h"
#include "io/file/folder.h"
#include "io/file/parallel.h"
#include "io/pickle/pickle.h"
#include "io/saves/alike_files.h"
#include "io/saves/dcp_save.h"
#include "io/store/findings.h"

namespace mckpt::impl {
namespace {

// The most bytes that an archive has around its tensor, and the largest pickle that is read, with the bytes
// around it.
constexpr i64 kMostAround = i64{1} << 20, kMostObject = (i64{256} << 20) + kMostAround;

// A missing or wrong file without which mckpt reads every tensor, and Megatron does not load the folder: the
// mark of a finished save, the common state. Opening warns of it, and `verify` fails.
bool is_needed_to_load(const Finding& f) {
  return f.warning && f.code == Code::kIncomplete && f.tensor.empty();
}

}  // namespace

std::vector<std::string> lost_load_files(const Store& store) {
  std::vector<std::string> out;
  if (dcp_dialect(store) != DcpDialect::kTorchDist) return out;
  for (const Finding& f : store.findings())
    if (is_needed_to_load(f)) out.push_back(f.file);
  return out;
}

// From memory alone. The rank is the one in the file's name.
Chunk DcpStore::chunk(i64 tensor, i64 index) const {
  std::size_t rank = meta_.dims[tensor].size(), at = static_cast<std::size_t>(index) * rank;
  const DcpRecord& r = meta_.records[tensor][index];
  Chunk c;
  c.offsets = meta_.offsets[tensor].subspan(at, rank);
  c.sizes = meta_.sizes[tensor].subspan(at, rank);
  c.file = r.file;
  c.rank = r.file < 0 ? -1 : file_ranks_[r.file];
  c.record_offset = r.offset;
  c.record_bytes = r.bytes;
  return c;
}

std::vector<std::string_view> DcpStore::saved_order() const {
  std::vector<std::string_view> out;
  if (!gathered_) return out;
  for (i64 i = 0; i < meta_.saved_order.size(); i++) out.push_back(meta_.saved_name(i));
  return out;
}

// ---- Records

template <typename Fn>
auto DcpStore::with_record(const DcpRecord& r, i64 most_bytes, Fn&& fn) const
    -> decltype(fn(std::declval<const ByteSource&>())) {
  std::string path = file_path(*this, r.file);
  if (r.packing >= 0)
    return with_file(
        path, [&] { return fn(*unpacked_.open(*open_files_, r, meta_.packings[r.packing], most_bytes)); });
  std::shared_ptr<const InputFile> opened;
  RecordSource record = with_file(path, [&] {
    opened = open_files_->open(r.file);
    return RecordSource(*opened, r.offset, r.bytes);
  });
  try {
    return fn(record);
  } catch (Error& e) {
    // Readers of a record count from its beginning.
    if (e.offset() >= 0 && e.file().empty()) e.offset(r.offset + e.offset());
    throw e.default_file(path);
  }
}

// The content of a packed record, unpacked again for each reader that comes late.
class DcpStore::UnpackedChunk final : public ByteSource {
 public:
  UnpackedChunk(const DcpStore& store, const DcpRecord& record, i64 most_bytes, i64 size)
      : ByteSource(size), store_(store), record_(record), most_bytes_(most_bytes) {}

 private:
  void read_inside(i64 offset, std::span<u8> to) const override {
    store_.with_record(record_, most_bytes_, [&](const ByteSource& bytes) { bytes.read(offset, to); });
  }
  const DcpStore& store_;
  DcpRecord record_;
  i64 most_bytes_;
};

// Objects that are files of their own come after the objects of .metadata, and are never packed.
DcpRecord DcpStore::record_of(i64 object) const {
  if (object < std::ssize(meta_.object_records)) return meta_.object_records[object];
  const Object& o = objects_[object];
  return {.file = o.file, .offset = o.record_offset, .bytes = o.record_bytes};
}

// Where the elements of a chunk are. Throws kRecordMissing, kItemMismatch, and what opening an archive
// throws; errors name tensor and file.
ChunkData DcpStore::resolve(i64 tensor, i64 index) const {
  const DcpRecord& r = meta_.records[tensor][index];
  std::span<const i64> sizes = chunk(tensor, index).sizes;
  try {
    if (r.file < 0) throw Error(Code::kRecordMissing, cat("chunk ", index, " has no entry in storage_data"));
    if (safetensors_inside_)
      throw Error(Code::kItemMismatch, std::string(kSafetensorsInside))
          .file(file_path(*this, r.file))
          .help(kSaveOtherwise);
    const i64 most_bytes =
        checked_add(dtype_bytes(dtype(tensor), checked_items(sizes)), kMostAround, "a record");
    i64 record_bytes = 0;
    DcpItem item = with_record(r, most_bytes, [&](const ByteSource& record) {
      record_bytes = record.size();
      return read_dcp_item(record, dtype(tensor), sizes);
    });
    if (item.carries_values) carries_values_ = true;
    if (r.packing >= 0 && !item.unpacked)
      item.unpacked = std::make_shared<UnpackedChunk>(*this, r, most_bytes, record_bytes);
    if (r.packing >= 0) item.sum.reset();
    i64 base = item.unpacked ? 0 : r.offset;
    std::optional<Checksum> checksum;
    if (item.sum)
      checksum = {r.file, r.offset + item.sum->offset, item.sum->bytes, item.sum->crc32, "", tensor};
    return {.file = r.file,
            .offset = base + item.offset,
            .dtype = dtype(tensor),
            .strides = std::move(item.strides),
            .big_endian = item.big_endian,
            .checksum = std::move(checksum),
            .unpacked = std::move(item.unpacked)};
  } catch (Error& e) {
    throw e.default_tensor(name(tensor));
  }
}

// The root of the object's pickle, which it keeps alive; null for an object without a record.
std::shared_ptr<const PickleValue> DcpStore::object(i64 index) const {
  const Object& o = objects_[index];
  if (o.file < 0) return nullptr;
  struct Value {
    std::shared_ptr<const Pickle> pickle;
    PickleValue root;
  };
  auto value = std::make_shared<Value>();
  value->pickle = with_record(record_of(index), kMostObject,
                              [](const ByteSource& record) { return read_dcp_object(record); });
  value->root = value->pickle->root();
  return {value, &value->root};
}

// The sums in the archives of all records. Opens every record.
void DcpStore::each_checksum(const std::function<void(const Checksum&)>& visit) const {
  // The sums in a packed record are compared when it is unpacked.
  auto of_record = [&](const DcpRecord& r, i64 tensor) {
    if (r.file < 0 || files_[r.file].bytes < 0 || r.packing >= 0) return;
    try {
      with_record(r, 0, [&](const ByteSource& record) {
        each_item_checksum(record, [&](i64 at, i64 size, u32 crc, std::string_view name) {
          visit({.file = r.file,
                 .offset = r.offset + at,
                 .bytes = size,
                 .crc32 = crc,
                 .name = std::string(name),
                 .tensor = tensor});
        });
      });
    } catch (const Error& e) {
      // An archive that cannot be opened is reported when its chunk is resolved or its object is read. A read
      // that failed may succeed then, and the sums would be missing.
      if (e.is_of_the_moment()) throw;
    }
  };
  for (i64 o = 0; o < std::ssize(objects_); o++) of_record(record_of(o), -1);
  for (i64 t = 0; t < tensor_count(); t++)
    for (const DcpRecord& r : meta_.records[t]) of_record(r, t);
}

// ---- Checks

// The findings that `verify` adds to the findings of opening: reads all objects, and no tensor's data but
// copies and files that have a hash.
std::optional<std::vector<Finding>> DcpStore::check(int threads) const {
  Findings findings;
  check_objects(threads, findings);
  for (Finding& f : damage(CheckedPart::kAll)) findings.add(std::move(f));
  for (Finding& f : of_parts([](const Folder& part) { return check_loading(part); }))
    findings.add(std::move(f));
  for (Finding& f : of_parts([](const Folder& part) { return check_integrity(part); }))
    findings.add(std::move(f));
  for (Finding f : findings_)
    if (is_needed_to_load(f)) f.warning = false, findings.add(std::move(f));
  return findings.take();
}

// Names, files of two saves, copies that differ, files that are copies.
std::vector<Finding> DcpStore::damage(CheckedPart part) const {
  std::vector<Finding> found = check_names(*this, dialect_, run_sizes_found(), part);
  for (Finding& f : check_mixed(*this)) found.push_back(std::move(f));
  check_copies(found);
  auto same = [&](const DcpRecord& a, const DcpRecord& b) { return same_bytes(a, b); };
  for (Finding& f : find_copied_files(*this, *open_files_, impl::alike_files(*this, meta_.copies), same))
    found.push_back(std::move(f));
  return found;
}

std::vector<Finding> DcpStore::of_parts(
    const std::function<std::vector<Finding>(const Folder&)>& visit) const {
  std::vector<Finding> out;
  for (const std::string& part : parts_.folders)
    for (Finding& f : visit(Folder(part.empty() ? root_ : cat(root_, "/", part), opening_))) {
      if (!part.empty() && !f.file.empty()) f.file = cat(part, "/", f.file);
      out.push_back(std::move(f));
    }
  return out;
}

i64 DcpStore::alike_files() const {
  if (has_integrity(Folder(cat(root_, "/", parts_.folders[0]), opening_))) return 0;
  i64 files = 0;
  for (const std::vector<AlikeFile>& group : impl::alike_files(*this, meta_.copies))
    files += std::ssize(group);
  return files;
}

// Whether two records are equal byte for byte. A record that cannot be read counts as equal here: reading
// it elsewhere reports it.
bool DcpStore::same_bytes(const DcpRecord& a, const DcpRecord& b) const {
  constexpr i64 kBlock = i64{1} << 20;
  if (a.file < 0 || b.file < 0) return true;
  if (a.bytes != b.bytes) return false;
  try {
    std::shared_ptr<const InputFile> one = open_files_->open(a.file), other = open_files_->open(b.file);
    for (i64 at = 0; at < a.bytes; at += kBlock) {
      i64 bytes = std::min(kBlock, a.bytes - at);
      if (one->read(a.offset + at, bytes) != other->read(b.offset + at, bytes)) return false;
    }
  } catch (const Error&) {
  }
  return true;
}

// Where every rank saved the same name, the lowest rank's is used; that is right only if all are equal. One
// finding for all tensors and one for all objects.
void DcpStore::check_copies(std::vector<Finding>& out) const {
  for (bool object : {false, true}) {
    std::set<i64> rows;
    for (const DcpMetadata::Copy& c : meta_.copies)
      if (c.object == object && !rows.contains(c.row) && !same_bytes(c.taken, c.other)) rows.insert(c.row);
    if (rows.empty()) continue;
    i64 first = *rows.begin();
    std::string name(object ? meta_.object_name(first) : meta_.name(first));
    std::string more = rows.size() > 1 ? cat(" and of ", rows.size() - 1, " more") : "";
    out.push_back(
        {.code = Code::kRecordUnused,
         .tensor = std::move(name),
         .message = cat("ranks have saved different values of the same ", object ? "object" : "tensor", more,
                        "; the values of the lowest rank are used, the others are left out"),
         .warning = true});
  }
}

// Reads the pickle of every object, on several threads, and reports what the interpreter noted.
void DcpStore::check_objects(int threads, Findings& findings) const {
  PlacedFindings found;
  parallel_for(static_cast<i64>(objects_.size()), threads, [&](int, i64 i) {
    const Object& o = objects_[i];
    if (o.file < 0 || files_[o.file].bytes < 0) return;
    auto add = [&](Finding f) {
      f.tensor = o.name;
      f.file = file_label(*this, o.file);
      found.add(i, std::move(f));
    };
    try {
      auto pickle = with_record(record_of(i), kMostObject,
                                [](const ByteSource& record) { return read_dcp_object(record); });
      for (const PickleNote& note : pickle->notes())
        add({.code = note.code, .message = note.message, .warning = note.warning});
    } catch (const Error& e) {
      add(to_finding(e));
    }
  });
  for (Finding& f : found.take()) findings.add(std::move(f));
}

// From the args of Megatron-LM, the common state of torch_dist, or the configuration of Megatron-Bridge.
// An object that cannot be read is reported as an object, not here.
RunSizes DcpStore::run_sizes_found() const {
  try {
    if (std::shared_ptr<const PickleValue> args = args_of(*this)) return run_sizes(*args);
  } catch (const Error&) {
  }
  return run_sizes_of_yaml(run_config_text(*this));
}

}  // namespace mckpt::impl
