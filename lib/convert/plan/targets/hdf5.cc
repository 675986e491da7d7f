// Both plans keep what they read open in the parts of the conversion. Chunks are looked at here, each by its
// own header, because their places decide the layout.
#include "convert/plan/targets/hdf5.h"

#include <algorithm>

#include "convert/open/damage.h"
#include "convert/open/open.h"
#include "convert/plan/target.h"
#include "convert/plan/targets/hdf5_job.h"
#include "core/base/error.h"
#include "core/items/dtype.h"
#include "io/archive/archive.h"
#include "io/copy/written_sums.h"
#include "io/dcp/check/check.h"
#include "io/hdf5/archive_layout.h"
#include "io/listing/manifest.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
#include "io/values/tensor_reader.h"

namespace mckpt::impl {
namespace {

Opened open_source(const ToHdf5Options& options) {
  if (options.files.base)
    throw Error(Code::kUsage,
                "an archive has the files of a checkpoint as they are, and no adapter is merged into `base`")
        .help("leave out `base`, or merge the adapter by an export and archive its result");
  std::unique_ptr<Store> store = open_store(options.source, options.files);
  bool archive = open_archive(options.source, options.files) != nullptr;
  if (archive || format_family(store->format()) == FormatFamily::kHdf5)
    throw Error(Code::kUnknownFormat, archive ? "this is an archive already" : "this is an HDF5 file already")
        .file(options.source)
        .expected("a checkpoint of another format");
  std::vector<Finding> damage = refuse_damage(*store, CheckedPart::kAll, options.accept);
  Opened out = open_plain(std::move(store), options.source, std::move(damage));
  if (options.assets) out.folders.push_back(*options.assets);
  return out;
}

// Elements smaller than a byte are copied as the bytes that they fill.
ProofSide bytes_or_items(const Store& store) {
  ProofSide side = side_of(store);
  side.items = [&store](i64 t) {
    return TensorReader::tensor_bytes(store, t) / std::max(1, dtype_info(store.dtype(t)).bits / 8);
  };
  return side;
}

std::vector<std::pair<std::string, std::string>> facts_of(const Store& store) {
  std::vector<std::pair<std::string, std::string>> out = {
      {"schema", "mckpt.archive/1"},
      {"mckpt", MCKPT_VERSION},
      {"format", std::string(format_text(store.format()))},
      {"ranks", cat(store.ranks())}};
  for (const auto& [name, value] : store.facts())
    if (name != "chosen" &&
        std::ranges::find(out, name, &std::pair<std::string, std::string>::first) == out.end())
      out.emplace_back(name, value);
  return out;
}

// A name with an ending of HDF5 files is a file.
bool is_one_file(const ToHdf5Options& options) {
  return options.single_file || options.target.ends_with(".h5") || options.target.ends_with(".hdf5");
}

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

ArchiveContents contents_of(const Store& store, const ArchivedFiles& files, const ReadableChunks& chunks,
                            const ToHdf5Options& options) {
  ArchiveContents contents;
  if (is_one_file(options)) contents.file_name = last_part(options.target);
  contents.facts = facts_of(store);
  add_contents(contents, store, files, chunks);
  return contents;
}

std::vector<std::pair<i32, i32>> all_tensors(const Store& store) {
  std::vector<std::pair<i32, i32>> tensors;
  for (i32 t = 0; t < store.tensor_count(); t++) tensors.emplace_back(t, t);
  return tensors;
}

class ArchiveTarget final : public Target {
 public:
  ArchiveTarget(const Opened& source, const ToHdf5Options& options)
      : files_(archived_files(source.store(), options.source, options.assets)),
        chunks_(source.store(), all_tensors(source.store())),
        layout_(contents_of(source.store(), files_, chunks_, options), options.files.helper_folders) {
    const Store& store = source.store();
    job = std::make_unique<ArchiveJob>(store, files_, chunks_, layout_);
    proof = {bytes_or_items(store), bytes_or_items(store)};
    path = options.target, single_file = is_one_file(options), format = "HDF5";
    set_files(*this, layout_.output_files());
    if (single_file) Planned::files[0].name = options.target;
    identified.settings.emplace("to-hdf5", MCKPT_VERSION);
    identified.settings->set("single_file", single_file);
    identified.beside = files_.identity(), identified.result = layout_.identity();
    if (!files_.left_out.empty()) notes.warn(cat("not in the archive: ", listed(files_.left_out, 20)));
    details.note(
        cat("files   ", counted(std::ssize(files_.files), "file"), " of the checkpoint, each bit for bit"));
  }

  // The index has sums of all data, and the user block, by which a reader finds it, is written last.
  void write_frame(const FramePlace& to) const override {
    const WrittenSums::ByPlace sums = to.sums.by_place();
    to.write_beside();
    layout_.write(to.out, [&](i64 part, i64 offset) { return sums.crc32(static_cast<i32>(part), offset); });
  }
  bool has_sums_of_data() const override { return true; }

 private:
  ArchivedFiles files_;
  ReadableChunks chunks_;
  ArchiveLayout layout_;
};

}  // namespace

Conversion plan_to_hdf5(const ToHdf5Options& options) {
  return plan(open_source(options),
              [&](Opened& source) { return std::make_unique<ArchiveTarget>(source, options); });
}

namespace {

// The files of an archive without a meaning: a store without tensors.
class FilesOfArchive final : public Store {
 public:
  FilesOfArchive(const Archive& archive, std::string path, const OpenOptions& opening) {
    root_ = std::move(path);
    opening_ = opening;
    for (const ListedFile& f : archive.index().files) files_.push_back({f.name, f.bytes});
  }

  i64 tensor_count() const override { return 0; }
  std::string_view name(i64) const override { return {}; }
  DType dtype(i64) const override { return DType::kU8; }
  std::span<const i64> dims(i64) const override { return {}; }
  i64 chunk_count(i64) const override { return 0; }
  Chunk chunk(i64, i64) const override { return {}; }
  ChunkData resolve(i64, i64) const override { return {}; }
};

// Copies files of a store, each as a piece of bytes.
class FileCopy final : public CopyJob {
 public:
  FileCopy(const Store& store, std::vector<i64> files)
      : store_(store), sources_(store), files_(std::move(files)) {}

  i64 task_count() const override { return std::ssize(files_); }
  i64 task_bytes(i64 t) const override { return file(t).bytes; }
  CopyTask task(i64 t) const override {
    i32 number = static_cast<i32>(t);
    i64 bytes = file(t).bytes;
    CopyTask out{Plan(this), no_cast(DType::kU8)};
    i32 source = out.plan.add_source({static_cast<i32>(files_[t]), 0, bytes, 1, number});
    i32 to = out.plan.add_destination({number, 0, bytes, 1, number});
    if (bytes > 0) out.plan.add(to, {.slot = source, .length = bytes});
    out.plan.finish();
    return out;
  }
  const StoreFile& file(i64 t) const { return store_.files()[files_[t]]; }
  std::string tensor_of(const Region& region) const override { return file(region.tensor).path; }
  const ByteSource& source(i32 number) const override { return sources_[number]; }

 private:
  const Store& store_;
  StoreBytes sources_;
  std::vector<i64> files_;
};

// The manifest of the result is a new one, which lists the same files.
class FilesTarget final : public Target {
 public:
  FilesTarget(const Opened& source, const ArchiveIndex& index, const FromHdf5Options& options) {
    std::vector<i64> numbers;
    for (i64 f = 0; f < std::ssize(index.files); f++)
      if (index.files[f].name != kManifestName) numbers.push_back(f);
    path = options.target, single_file = !index.opened.empty() && numbers.size() == 1;
    std::vector<OutputFile> written;
    for (i64 f : numbers) written.push_back({single_file ? path : index.files[f].name, index.files[f].bytes});
    set_files(*this, std::move(written));
    auto copy = std::make_unique<FileCopy>(source.store(), std::move(numbers));
    ProofSide side{std::ssize(files), [&j = *copy](i64 t) { return j.file(t).path; },
                   [&j = *copy](i64 t) { return j.file(t).bytes; }};
    proof = {side, side};
    job = std::move(copy);
    of_files = true, format = "the files of the archive, as they were";
    identified.settings.emplace("from-hdf5", MCKPT_VERSION);
    identified.result = index.name_text();
  }
  void write_frame(const FramePlace& to) const override { to.write_beside(); }
};

}  // namespace

Conversion plan_from_hdf5(const FromHdf5Options& options) {
  std::shared_ptr<const Archive> archive = open_archive(options.source, options.files);
  if (!archive) {
    const auto store = open_store(options.source, options.files);
    throw Error(Code::kUnknownFormat, "this is not an archive that mckpt made")
        .file(options.source)
        .found(format_text(store->format()));
  }
  const ArchiveIndex& index = archive->index();
  for (i64 p = 0; p < std::ssize(index.parts); p++) archive->part(p);  // all are there, each of its size
  Opened opened;
  opened.plain = std::make_unique<FilesOfArchive>(*archive, options.source, options.files);
  opened.folders = {options.source}, opened.opening = options.files;
  return plan(std::move(opened),
              [&](Opened& source) { return std::make_unique<FilesTarget>(source, index, options); });
}

}  // namespace mckpt::impl
