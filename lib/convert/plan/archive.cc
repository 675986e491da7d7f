// Both plans keep what they read open in the parts of the conversion. Chunks are looked at here, each by its
// own header, because their places decide the layout.
#include "convert/plan/archive.h"

#include <algorithm>

#include "convert/plan/archive_job.h"
#include "convert/jobs/proof.h"
#include "convert/plan/conversion.h"
#include "convert/source/choice.h"
#include "convert/source/damage.h"
#include "convert/source/identity.h"
#include "convert/plan/setting_identity.h"
#include "core/base/error.h"
#include "core/items/dtype.h"
#include "io/copy/read_sums.h"
#include "io/dcp/check/check.h"
#include "io/file/archive.h"
#include "io/hdf5/archive_layout.h"
#include "io/output/manifest.h"
#include "io/output/plan_identity.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
#include "io/values/tensor_reader.h"

namespace mckpt::impl {
namespace {

std::unique_ptr<Store> open_source(const ToHdf5Options& options) {
  std::unique_ptr<Store> store = open_store(options.source, options.files);
  bool archive = open_archive(options.source, options.files) != nullptr;
  if (archive || format_family(store->format()) == FormatFamily::kHdf5)
    throw Error(Code::kUnknownFormat, archive ? "this is an archive already" : "this is an HDF5 file already")
        .file(options.source)
        .expected("a checkpoint of another format");
  return store;
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

// A name that ends as those of HDF5 files do is a file.
bool is_one_file(const ToHdf5Options& options) {
  return options.single_file || options.target.ends_with(".h5") || options.target.ends_with(".hdf5");
}

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

Conversion plan_to_hdf5(const ToHdf5Options& options) {
  Conversion c;
  const Store& store = *(c.store = &c.parts.keep(open_source(options)));
  c.oddities.push_back({store.root(), refuse_damage(store, CheckedPart::kAll, options.accept)});
  note_choice(options.source, store, c.notes);
  const auto& files = c.parts.make<ArchivedFiles>(archived_files(store, options.source, options.assets));
  std::vector<std::pair<i32, i32>> tensors;
  for (i32 t = 0; t < store.tensor_count(); t++) tensors.emplace_back(t, t);
  const auto& chunks =
      c.parts.make<ReadableChunks>(store, tensors);
  ArchiveContents contents;
  const bool one_file = is_one_file(options);
  if (one_file) contents.file_name = last_part(options.target);
  contents.facts = facts_of(store);
  add_contents(contents, store, files, chunks);
  const auto& layout = c.parts.make<ArchiveLayout>(std::move(contents), options.files.helper_folders);
  c.job = std::make_unique<ArchiveJob>(store, files, chunks, layout);
  c.proof = {bytes_or_items(store), bytes_or_items(store)};
  c.sums = std::make_unique<ReadSums>();
  c.layout = &layout;
  c.sources = {store.root()};
  if (options.assets) c.sources.push_back(*options.assets);
  c.opening = store.opening();
  c.path = options.target;
  c.single_file = one_file;
  c.format = "HDF5";
  c.files = layout.output_files();
  if (c.single_file) c.files[0].name = options.target;
  for (const OutputFile& f : c.files) c.bytes += f.bytes;
  PlanIdentity text("to-hdf5", MCKPT_VERSION);
  text.set("single_file", one_file);
  text.add(kSourceFiles, source_identity(store)).add(kBesideFiles, files.identity());
  c.identity = text.add(kResult, layout.identity()).text();
  if (!files.left_out.empty()) c.notes.warn(cat("not in the archive: ", listed(files.left_out, 20)));
  c.details.note(
      cat("files   ", counted(std::ssize(files.files), "file"), " of the checkpoint, each bit for bit"));
  return c;
}

namespace {

// The files of an archive without a meaning: a store without tensors.
class FilesOfArchive final : public Store {
 public:
  FilesOfArchive(const Archive& archive, std::string path, const OpenOptions& opening) {
    root_ = std::move(path);
    opening_ = opening;
    for (const ArchiveIndex::File& f : archive.index().files) files_.push_back({f.name, f.bytes});
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

}  // namespace

// The manifest of the result is a new one, which lists the same files.
Conversion plan_from_hdf5(const FromHdf5Options& options) {
  std::shared_ptr<const Archive> archive = open_archive(options.source, options.files);
  if (!archive) {
    const auto store = open_store(options.source, options.files);
    throw Error(Code::kUnknownFormat, "this is not an archive that mckpt made")
        .file(options.source)
        .found(format_text(store->format()));
  }
  Conversion c;
  const ArchiveIndex& index = archive->index();
  const Store& store = *(c.store = &c.parts.make<FilesOfArchive>(*archive, options.source, options.files));
  for (i64 p = 0; p < std::ssize(index.parts); p++) archive->part(p);  // all are there, each of its size
  std::vector<i64> files;
  for (i64 f = 0; f < std::ssize(index.files); f++)
    if (index.files[f].name != kManifestName) files.push_back(f);
  c.single_file = !index.opened.empty() && files.size() == 1;
  for (i64 f : files) {
    c.files.push_back({c.single_file ? options.target : index.files[f].name, index.files[f].bytes});
    c.bytes += index.files[f].bytes;
  }
  auto job = std::make_unique<FileCopy>(store, files);
  ProofSide side{std::ssize(files), [&j = *job](i64 t) { return j.file(t).path; },
                 [&j = *job](i64 t) { return j.file(t).bytes; }};
  c.proof = {side, side};
  c.of_files = true;
  c.format = "the files of the archive, as they were";
  c.job = std::move(job);
  c.sums = std::make_unique<ReadSums>();
  c.layout = std::monostate{};
  c.sources = {options.source};
  c.opening = options.files;
  c.path = options.target;
  PlanIdentity text("from-hdf5", MCKPT_VERSION);
  text.add(kSourceFiles, source_identity(store));
  c.identity = text.add(kResult, index.name_text()).text();
  return c;
}

}  // namespace mckpt::impl
