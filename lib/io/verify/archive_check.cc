// Sums first, of the rows and of the bytes between them; then what the helper for HDF5 says of each tensor.
#include "io/verify/archive_check.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/items/dtype.h"
#include "core/items/shape.h"
#include "io/archive/archive.h"
#include "io/file/crc32.h"
#include "io/file/parallel.h"
#include "io/file/place.h"
#include "io/hdf5/answer.h"
#include "io/hdf5/helper.h"
#include "io/hdf5/layout.h"
#include "io/listing/manifest.h"
#include "io/listing/stretches.h"
#include "io/store/open/sniff.h"
#include "io/store/store.h"
#include "io/values/strided.h"
#include "io/verify/manifest_check.h"
#include "io/verify/verify.h"

namespace mckpt::impl {
namespace {

using hdf5_wire::Storage;

Finding damaged(const std::string& file, std::string message, i64 offset = -1) {
  Finding f{.code = Code::kBadChecksum, .file = file, .message = std::move(message)};
  f.help = "copy the archive again from its source";
  if (offset >= 0) f.offset = offset;
  return f;
}

std::string without_percents(std::string_view name) {
  std::string out;
  for (std::size_t i = 0; i < name.size(); i++) {
    out += name[i];
    if (name[i] == '%' && i + 1 < name.size() && name[i + 1] == '%') i++;
  }
  return out;
}

// HDF5's view of one file: the datasets by path.
class PartView {
 public:
  PartView(const InputFile& file, std::span<const std::string> folders)
      : superblock_(find_hdf5_superblock(file)), bytes_(file.size() - superblock_) {
    if (superblock_ < 0) throw Error(Code::kBadHdf5, "the file has no HDF5 signature").file(file.path());
    Hdf5Answer answer = parse_hdf5_answer(ask_hdf5_helper(file, superblock_, folders));
    if (!answer.faults.empty())
      throw Error(Code::kBadHdf5, cat("the HDF5 library says: ", escaped(answer.faults[0].words, 500)))
          .file(file.path())
          .tensor(answer.faults[0].name);
    for (Hdf5Dataset& d : answer.datasets) {
      std::string name = d.name;
      datasets_.emplace(std::move(name), std::move(d));
    }
  }

  // The dataset of a path; null: the file has none. A contiguous one is checked first, and what
  // check_dataset() throws of it is thrown.
  const Hdf5Dataset* find(std::string_view path) const {
    while (path.starts_with('/')) path.remove_prefix(1);
    auto at = datasets_.find(path);
    if (at == datasets_.end()) return nullptr;
    // Other storages have no place of their own in the file.
    if (at->second.storage == Storage::kContiguous) check_dataset(at->second, bytes_);
    return &at->second;
  }

  // Where the data of a contiguous dataset begin in the file. Throws kBadHdf5 if they were never written.
  i64 data_offset(const Hdf5Dataset& d) const {
    if (d.offset < 0) throw Error(Code::kBadHdf5, "the data of the dataset were never written");
    return superblock_ + d.offset;
  }

 private:
  i64 superblock_, bytes_;  // where HDF5's addresses count from, and the bytes from there on
  std::map<std::string, Hdf5Dataset, std::less<>> datasets_;
};

// Whether the store is the checkpoint that the archive was made of, whose tensors HDF5 shows. Other
// checkpoints in the archive are files of it, without datasets.
bool is_shown(const Store& store, const ArchivePlace& place) {
  if (place.name.empty()) return true;
  const std::string& opened = place.archive->index().opened;
  if (!opened.empty()) return place.name == opened;
  const std::string end = cat("/", place.name);
  if (!store.root().ends_with(end)) return false;
  try {  // the folder may lead to a checkpoint in it
    const std::string whole = store.root().substr(0, store.root().size() - end.size());
    return open_store(whole, store.opening())->root() == store.root();
  } catch (const Error& e) {
    if (e.code() == Code::kInterrupted) throw;
    return false;
  }
}

class ArchiveCheck {
 public:
  ArchiveCheck(const Store& store, const ArchivePlace& place, int threads,
               const std::function<void()>& going_on)
      : store_(store),
        archive_(*place.archive),
        prefix_(place.name),
        threads_(threads),
        going_on_(going_on) {}

  std::vector<Finding> sums() {
    const std::vector<ArchiveIndex::Row>& rows = archive_.index().rows;
    std::vector<std::optional<Finding>> found(rows.size());
    parallel_for(std::ssize(rows), threads_, [&](int, i64 r) { found[r] = row_fault(rows[r]); });
    for (i64 p = 0; p < std::ssize(archive_.index().parts); p++) found.push_back(rest_fault(p));
    std::vector<Finding> out;
    std::set<std::pair<std::string, std::string>> whole;  // of files as a whole: a missing one has many rows
    for (auto& f : found)
      if (f && (f->offset >= 0 || whole.emplace(f->file, f->message).second)) out.push_back(std::move(*f));
    return out;
  }

  // The HDF5 files against the manifest beside them.
  std::vector<Finding> listed() const {
    if (!archive_.index().folder) return {};
    Folder folder(parent_folder(archive_.part(0)->path()), {.containers = nullptr});
    std::vector<Finding> out;
    try {
      std::optional<Manifest> manifest = read_manifest(folder);
      if (!manifest) return out;
      out = check_listed_files(folder, *manifest);
      std::ranges::move(unlisted_files(folder, *manifest), std::back_inserter(out));
    } catch (const Error& e) {
      out.push_back(to_finding(e));
      out.back().file = kManifestName;
    }
    return out;
  }

  // Throws kModuleMissing, and what HDF5 cannot read.
  std::vector<Finding> datasets() {
    std::vector<Finding> out;
    for (i64 t = 0; t < store_.tensor_count(); t++) {
      try {
        check_tensor(t);
      } catch (Error& e) {
        if (e.code() == Code::kModuleMissing || e.code() == Code::kInterrupted) throw;
        e.default_tensor(store_.name(t));
        out.push_back(to_finding(e));
      }
    }
    return out;
  }

 private:
  std::optional<Finding> row_fault(const ArchiveIndex::Row& r) const {
    const std::string& part = archive_.index().parts[r.part].name;
    try {
      u32 sum = sum_bytes(0, *archive_.part(r.part), r.offset, r.offset + r.bytes, [&](i64) { going_on_(); });
      if (sum == r.crc32) return std::nullopt;
    } catch (const Error& e) {
      if (e.code() == Code::kInterrupted) throw;
      return damaged(part, cat("cannot be compared: ", e.what()));
    }
    const std::string& file = archive_.index().files[r.file].name;
    return damaged(part,
                   cat("the data are not those that were archived: bytes ", r.begin, " to ", r.end() - 1,
                       " of ", escaped(file), " have another CRC-32 than in the index"),
                   r.offset);
  }

  // All bytes of a part that are in no row, front to back.
  std::optional<Finding> rest_fault(i64 number) const {
    const ArchiveIndex::Part& part = archive_.index().parts[number];
    std::vector<SummedStretch> known;
    for (const ArchiveIndex::Row& r : archive_.index().rows)
      if (r.part == number) known.push_back({r.offset, r.bytes, r.crc32});
    const IndexPlace& place = archive_.place();
    if (number == 0)
      known.insert(known.end(), {{0, kUserBlockBytes},
                                 {place.rows_offset, place.rows_bytes, place.rows_crc32},
                                 {place.names_offset, place.names_bytes, place.names_crc32}});
    std::ranges::sort(known, {}, &SummedStretch::offset);
    try {
      const u32 sum = sum_outside(known, *archive_.part(number), part.bytes, [&](i64) { going_on_(); });
      if (sum == part.rest_crc32) return std::nullopt;
    } catch (const Error& e) {
      if (e.code() == Code::kInterrupted) throw;
      return damaged(part.name, cat("cannot be compared: ", e.what()));
    }
    return damaged(
        part.name,
        "bytes between the data have another CRC-32 than in the index: headers of HDF5, or padding");
  }

  const PartView& view(i64 part) {
    auto at = views_.find(part);
    if (at == views_.end())
      at = views_.try_emplace(part, *archive_.part(part), store_.opening().helper_folders).first;
    return at->second;
  }

  i64 part_named(std::string_view name) const {
    if (name == ".") return 0;
    const auto& parts = archive_.index().parts;
    auto at = std::ranges::find(parts, name, &ArchiveIndex::Part::name);
    return at == parts.end() ? -1 : at - parts.begin();
  }

  static Error other(const char* what) {
    return Error(Code::kBadHdf5,
                 cat("HDF5 shows something else than the files of the checkpoint have: ", what));
  }

  void check_tensor(i64 t) {
    const Hdf5Dataset* d = view(0).find(store_.name(t));
    if (!d) throw other("there is no dataset of this name");
    const Hdf5Type type = hdf5_type(store_.dtype(t));
    if (d->type.kind != type.kind || d->type.bytes != type.bytes || d->type.numbers != type.numbers)
      throw other("the type");
    bool whole_bytes = dtype_info(store_.dtype(t)).bits >= 8;
    if (whole_bytes && !std::ranges::equal(d->dims, store_.dims(t))) throw other("the shape");
    for (i64 c = 0; c < store_.chunk_count(t); c++) check_chunk(*d, t, c);
  }

  // The row whose bytes are the data of the chunk; null: they are stored in another way.
  const ArchiveIndex::Row* row_of(const Chunk& chunk, const ChunkData& data) const {
    bool plain = !data.big_endian && (data.strides.empty() || is_row_major(chunk.sizes, data.strides));
    if (data.unpacked || data.file < 0 || !plain) return nullptr;
    const std::string& path = store_.files()[data.file].path;
    i64 file = archive_.find(prefix_.empty() ? path : cat(prefix_, path.empty() ? "" : "/", path));
    if (file < 0) return nullptr;
    std::span<const ArchiveIndex::Row> rows = archive_.rows(file);
    auto at = std::ranges::lower_bound(rows, data.offset, {}, &ArchiveIndex::Row::begin);
    bool same = at != rows.end() && at->begin == data.offset &&
                at->bytes == dtype_bytes(data.dtype, Shape(chunk.sizes).items());
    return same ? &*at : nullptr;
  }

  void check_chunk(const Hdf5Dataset& d, i64 t, i64 c) {
    Chunk chunk = store_.chunk(t, c);
    if (chunk.replica || Shape(chunk.sizes).items() == 0) return;
    const ArchiveIndex::Row* row = row_of(chunk, store_.resolve(t, c));
    i64 part = 0, offset = 0;
    if (d.storage == Storage::kContiguous) {
      offset = view(0).data_offset(d);
      i64 item = std::max(1, dtype_info(store_.dtype(t)).bits / 8);
      for (std::size_t k = 0; k < chunk.offsets.size(); k++) {
        i64 step = item;
        for (std::size_t l = k + 1; l < chunk.offsets.size(); l++) step *= store_.dims(t)[l];
        offset += chunk.offsets[k] * step;
      }
    } else if (d.storage == Storage::kVirtual) {
      auto m = std::ranges::find_if(d.mappings, [&](const Hdf5Mapping& x) {
        return std::ranges::equal(x.offsets, chunk.offsets) && std::ranges::equal(x.sizes, chunk.sizes);
      });
      if (m == d.mappings.end()) throw other("a part of the virtual dataset");
      part = part_named(without_percents(m->file));
      const Hdf5Dataset* source = part < 0 ? nullptr : view(part).find(without_percents(m->dataset));
      if (!source || source->storage != Storage::kContiguous) throw other("the source of a virtual dataset");
      if (!std::ranges::equal(source->dims, chunk.sizes))
        throw other("the shape of a part of the virtual dataset");
      offset = view(part).data_offset(*source);
    } else {
      throw other("the storage");
    }
    if (!row || (row->part == part && row->offset == offset)) return;
    // Another tensor has the bytes in its dataset; this one has them a second time.
    if (sum_bytes(0, *archive_.part(part), offset, offset + row->bytes) != row->crc32)
      throw other("the place of the data");
  }

  const Store& store_;
  const Archive& archive_;
  std::string prefix_;
  int threads_;
  const std::function<void()>& going_on_;
  std::map<i64, PartView> views_;
};

}  // namespace

void check_archive(const Store& store, int threads, const std::function<void()>& going_on,
                   VerifyReport& report) {
  std::optional<ArchivePlace> place = find_in_archive(store.root(), store.opening());
  if (!place) return;
  ArchiveCheck check(store, *place, threads, going_on);
  Check line{.name = "archive", .count = std::ssize(place->archive->index().parts), .unit = "files"};
  std::vector<Finding> found = check.sums();
  std::ranges::move(check.listed(), std::back_inserter(found));
  try {
    if (is_shown(store, *place)) std::ranges::move(check.datasets(), std::back_inserter(found));
  } catch (const Error& e) {
    if (e.code() != Code::kModuleMissing) throw;
    line.note = "mckpt-hdf5 is not here, so what HDF5 shows was not compared";
  }
  line.status = status_of(found);
  report.add(std::move(line), std::move(found));
}

}  // namespace mckpt::impl
