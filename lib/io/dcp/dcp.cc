// Opening a DCP folder, step by step: read .metadata (or join what each rank wrote), look up the sizes of
// the data files, list the objects, find the dialect by the names, and collect what is wrong.
//
//   .metadata ----> DcpMetadata (columns) ----> dialect, checks of boxes and records ----> DcpStore
//   folder   ----> sizes of __R_N.distcp -----------^
//
// No data file is opened here.
#include "io/dcp/dcp.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/hybrid/spellings.h"
#include "io/dcp/check/boxes.h"
#include "io/dcp/check/mark.h"
#include "io/dcp/check/safetensors_inside.h"
#include "io/dcp/keys/key.h"
#include "io/dcp/keys/torch_dist_form.h"
#include "io/dcp/run/args.h"
#include "io/dcp/store.h"
#include "io/file/folder.h"
#include "io/listing/manifest.h"
#include "io/saves/dcp_save.h"
#include "io/store/findings.h"
#include "io/store/missing_file.h"
#include "io/store/names/dcp_names.h"
#include "io/store/names/iteration_names.h"
#include "io/store/store_view.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kMarker = kMarkOfTorchDist;
// Files beside the data that hold one pickled object each: of older torch_dist saves, and of Megatron-Bridge.
constexpr std::string_view kObjectFiles[] = {kCommonFile, "train_state.pt"};

// Parses the index `name` of the folder. Errors name the file.
DcpMetadata read_one(const Folder& folder, const std::string& name) {
  InputFile file = folder.open_file(name);
  DcpMetadata out;
  with_file(cat(folder.path(), "/", name), [&] {
    // Not file.read(0, file.size()), which would first write zeros over what are megabytes.
    std::size_t bytes = static_cast<std::size_t>(file.size());
    auto pickle = std::make_unique_for_overwrite<u8[]>(bytes);
    file.read(0, {pickle.get(), bytes});
    out = parse_dcp_metadata({pickle.get(), bytes});
  });
  return out;
}

// The metadata of a part, with its folder in front of the names of files. The common state of only one part
// keeps its name: readers look for one.
DcpMetadata placed(DcpMetadata m, const std::string& part, bool common) {
  if (part.empty()) return m;
  for (std::string& file : m.files) file = cat(part, "/", file);
  if (common) return m;
  RaggedRows<char> names;
  for (i64 o = 0; o < m.object_names.size(); o++) {
    std::string name(m.object_name(o));
    if (is_common_state(name)) name = cat(part, "/", name);
    names.items.insert(names.items.end(), name.begin(), name.end());
    names.end_row();
  }
  m.object_names = std::move(names);
  return m;
}

}  // namespace

// The order matters: files are numbered as .metadata names them, objects in files of their own are appended
// behind them, and the dialect is decided by the names of all tensors and objects.
DcpStore::DcpStore(const std::string& path, DcpParts parts, const OpenOptions& opening)
    : parts_(std::move(parts)) {
  opening_ = opening;
  Folder folder(path, opening);
  root_ = folder.path();
  read_metadata(folder);
  list_files(folder);
  add_objects(folder);
  find_dialect(folder);
  safetensors_inside_ = is_safetensors_inside(meta_, folder);
  collect_findings();
  collect_facts();
  open_files_.emplace(*this);
}

std::string DcpStore::in_part(std::size_t part, std::string_view name) const {
  const std::string& folder = parts_.folders[part];
  return folder.empty() ? std::string(name) : cat(folder, "/", name);
}

void DcpStore::read_metadata(const Folder& folder) {
  std::vector<DcpMetadata> parts;
  for (std::size_t p = 0; p < parts_.folders.size(); p++) parts.push_back(read_part(folder, p));
  if (parts.size() == 1)
    meta_ = std::move(parts[0]);
  else
    meta_ = merge_dcp_metadata(parts);
}

// Takes .metadata if it is there, otherwise the __<rank>.metadata files of all ranks. Throws kIncomplete if
// there are neither: torch writes .metadata last, so a save without it was interrupted.
DcpMetadata DcpStore::read_part(const Folder& folder, std::size_t part) {
  const std::string& name = parts_.folders[part];
  if (const std::string index = in_part(part, kDcpMetadata); folder.has_file(index)) {
    gathered_ = true;
    if (part == 0) add_fact("index", std::string(kDcpMetadata));
    return placed(read_one(folder, index), name, part == parts_.common);
  }
  std::vector<DcpMetadata> of_ranks;
  bool has_data = false;
  for (const FolderEntry& e : folder.entries(name)) {
    has_data |= is_dcp_data(e.name);
    if (!e.folder && rank_of_dcp_metadata(e.name) >= 0)
      of_ranks.push_back(read_one(folder, in_part(part, e.name)));
  }
  if (of_ranks.empty())
    throw Error(
        Code::kIncomplete,
        folder.has_file(kManifestName)
            ? "the folder has no .metadata: lost in copying, `*` leaves out names that begin with a dot"
            : "the folder has no .metadata")
        .file(name.empty() ? root_ : cat(root_, "/", name))
        .found(has_data ? "only data files: the save was interrupted before it was complete"
                        : "no DCP folder");
  add_fact("metadata", cat("one file for each of ", counted(std::ssize(of_ranks), "rank"),
                           "; objects are read from the lowest rank's file"));
  return placed(merge_dcp_metadata(of_ranks), name, part == parts_.common);
}

// Looks up the size of each data file, -1 for a missing one, and counts the ranks that wrote.
void DcpStore::list_files(const Folder& folder) {
  std::set<i32> ranks;
  for (const std::string& path : meta_.files) {
    files_.push_back({path, folder.file_bytes(path).value_or(-1)});
    file_ranks_.push_back(rank_of_dcp_data(path));
    ranks.insert(file_ranks_.back());
  }
  // A rank that held nothing leaves an empty file, which .metadata does not name. Beside files of another
  // save an empty one may be of that save too, if it is of none of the ranks before the last one that is
  // named.
  const i32 last = ranks.empty() ? -1 : *ranks.rbegin();
  for (const std::string& part : parts_.folders) {
    const std::size_t before = findings_.size();
    find_leftovers(folder, part, meta_.files, findings_);
    const bool mixed = findings_.size() > before;
    for (const FolderEntry& e : folder.entries(part))
      if (const i32 rank = rank_of_dcp_data(e.name);
          !e.folder && is_dcp_data(e.name) && (!mixed || rank < last))
        ranks.insert(rank);
  }
  ranks.erase(-1);
  ranks_ = std::max<i64>(1, static_cast<i64>(ranks.size()));
}

// Lists objects of .metadata and the files that are one pickled object each.
void DcpStore::add_objects(const Folder& folder) {
  for (i64 o = 0; o < meta_.object_names.size(); o++) {
    const DcpRecord& r = meta_.object_records[o];
    const std::string_view packing = r.packing < 0 ? "" : std::string_view(meta_.packings[r.packing]);
    objects_.push_back({std::string(meta_.object_name(o)), r.file, r.offset, r.bytes, {}, packing});
  }
  for (std::size_t part = 0; part < parts_.folders.size(); part++)
    for (std::string_view name : kObjectFiles) {
      const std::string path = in_part(part, name);
      std::optional<i64> bytes = folder.file_bytes(path);
      if (!bytes) continue;
      objects_.push_back(
          {part == parts_.common ? std::string(name) : path, static_cast<i32>(files_.size()), 0, *bytes, {}});
      files_.push_back({path, *bytes});
      file_ranks_.push_back(-1);
    }
}

void DcpStore::find_dialect(const Folder& folder) {
  DialectVotes votes;
  for (i64 t = 0; t < tensor_count(); t++) votes.tensor(name(t));
  for (const Object& o : objects_) votes.object(o.name);
  bool has_marker = true;
  for (std::size_t part = 0; part < parts_.folders.size(); part++)
    has_marker &= folder.has_file(in_part(part, kMarker));
  dialect_ = votes.dialect(has_marker);
  format_ = dcp_format(dialect_);
  if (dialect_ == DcpDialect::kTorchDist) look_at_torch_dist(folder, has_marker);
}

// Facts and findings about files that only torch_dist has. Megatron reads common.pt alone where it is
// there, so one that an older save left behind hides the object of this save.
void DcpStore::look_at_torch_dist(const Folder& folder, bool has_marker) {
  if (!has_marker) {
    findings_.push_back(missing_file(Code::kIncomplete, std::string(kMarker),
                                     "; Megatron writes it last and does not read a checkpoint without it"));
    findings_.back().warning = true;
  } else {
    for (Finding& f : of_parts([](const Folder& part) { return check_mark(part); }))
      findings_.push_back(std::move(f));
  }
  bool in_file = false, in_item = false;
  for (const Object& o : objects_) {
    in_file |= o.name == kCommonFile;
    in_item |= o.name != kCommonFile && is_common_state(o.name);
  }
  // Megatron-Core 0.16 saves the file, 0.19 the object.
  if (in_file || in_item)
    add_fact("common state", in_file ? std::string(kCommonFile) : "an object (after Megatron-Core 0.16)");
  else
    findings_.push_back(
        {.code = Code::kIncomplete,
         .file = std::string(kCommonFile),
         .message =
             "the common state is missing, with the args, the iteration and the options of the optimizer: it is neither this file nor an object, and Megatron does not load a checkpoint without it",
         .warning = true});
  TorchDistForm form;
  for (i64 t = 0; t < tensor_count(); t++) form.tensor(name(t));
  for (const Object& o : objects_) form.object(o.name);
  for (auto& [name, value] : form.facts()) add_fact(name, value);
  if (in_file && in_item)
    findings_.push_back(
        {.code = Code::kRecordUnused,
         .file = std::string(kCommonFile),
         .message = "the common state is in this file and also in an object; Megatron reads only this file",
         .warning = true});
  for (const FolderEntry& e : folder.entries())
    if (e.folder && e.name == "modelopt_state") add_fact("modelopt_state", "a folder");
  if (folder.has_file(in_part(parts_.common, "integrity.json")))
    add_fact("integrity.json", "hashes of the files");
}

// Joins the findings of all checks that need no data file, in a fixed order.
void DcpStore::collect_findings() {
  Findings findings;
  for (Finding& f : findings_) findings.add(std::move(f));
  for (Finding& f : meta_.findings) findings.add(std::move(f));
  meta_.findings.clear();
  check_boxes(meta_, findings);
  std::vector<i64> bytes;
  for (const StoreFile& f : files_) bytes.push_back(f.bytes);
  if (safetensors_inside_)
    findings.add({.code = Code::kItemMismatch,
                  .file = std::string(kDcpMetadata),
                  .message = std::string(kSafetensorsInside),
                  .help = std::string(kSaveOtherwise)});
  else
    check_records(meta_, bytes, findings);
  if (gathered_ && !safetensors_inside_) check_ends(meta_, bytes, findings);
  if (dialect_ == DcpDialect::kFsdpDtensor && meta_.stage_local_layers)
    findings.add(
        {.code = Code::kPipelineLoss,
         .file = std::string(kDcpMetadata),
         .message =
             "the last pipeline stage numbered its layers from 0, so layers of different stages have the same names, and only one tensor of each name is stored",
         .help = "save with Megatron's ckpt_format torch_dist, or without pipeline parallelism"});
  findings_ = findings.take();
}

// Facts for `inspect`: the iteration in the folder's name, torch's version of the format, names that only one
// program has.
void DcpStore::collect_facts() {
  std::string_view folder = std::string_view(root_).substr(root_.rfind('/') + 1);
  if (auto iteration = iteration_number(folder)) add_fact("iteration", cat(*iteration));
  if (!meta_.version.empty()) add_fact("metadata version", escaped(meta_.version));
  if (safetensors_inside_) add_fact("records", "safetensors");
  traits.packed = !meta_.packings.empty();
  if (traits.packed) add_fact("records packed with", listed(meta_.packings));
  if (std::string spelling = to_string(spelling_of_names()); !spelling.empty())
    add_fact("spelling", spelling);
  for (const char* embedding : {"tok_embeddings.weight", "tok_embeddings.embedding.weight",
                                "model.tok_embeddings.weight", "model.tok_embeddings.embedding.weight"})
    if (find_tensor(*this, embedding) >= 0) add_fact("names", "torchtitan");
}

// Names of parameters that versions and specs of Megatron spell differently. torch_dist has one name for a
// convolution, whatever its name at run time.
Spelling DcpStore::spelling_of_names() const {
  bool torch_dist = dialect_ == DcpDialect::kTorchDist;
  if (!torch_dist && dialect_ != DcpDialect::kFsdpDtensor) return {};
  SpellingEvidence evidence;
  for (i64 t = 0; t < tensor_count(); t++) {
    KeySection section = key_section(dialect_, name(t));
    bool convolution = torch_dist && with_usual_conv(section.name) != section.name;
    if (section.model() && !convolution) evidence.add(section.name);
  }
  return evidence.found();
}

namespace {

// Callers hold a Store; the functions below are about what only a DCP folder has. Null for another store, and
// for a view of a folder.
const DcpStore* dcp_of(const Store& store) { return dynamic_cast<const DcpStore*>(&store); }

// The folder that a view sees, at last.
const Store& behind_views(const Store& store) {
  const auto* view = dynamic_cast<const StoreView*>(&store);
  return view == nullptr ? store : behind_views(view->source());
}

}  // namespace

RunSizes dcp_run_sizes(const Store& store) {
  const DcpStore* dcp = dcp_of(store);
  return dcp == nullptr ? RunSizes{} : dcp->run_sizes_found();
}

std::vector<Finding> dcp_damage(const Store& store, CheckedPart part) {
  const DcpStore* dcp = dcp_of(store);
  return dcp == nullptr ? std::vector<Finding>{} : dcp->damage(part);
}

i64 dcp_alike_files(const Store& store) {
  const DcpStore* dcp = dcp_of(store);
  return dcp == nullptr ? 0 : dcp->alike_files();
}

std::vector<std::string_view> dcp_saved_order(const Store& store) {
  const DcpStore* dcp = dcp_of(behind_views(store));
  return dcp == nullptr ? std::vector<std::string_view>() : dcp->saved_order();
}

bool dcp_carries_values(const Store& store) {
  const DcpStore* dcp = dcp_of(behind_views(store));
  return dcp != nullptr && dcp->carries_values();
}

std::unique_ptr<Store> open_dcp(const std::string& path, const OpenOptions& opening) {
  return std::make_unique<DcpStore>(path, DcpParts{{""}, 0}, opening);
}

std::unique_ptr<Store> open_dcp_parts(const std::string& path, DcpParts parts, const OpenOptions& opening) {
  return std::make_unique<DcpStore>(path, std::move(parts), opening);
}

std::optional<DcpDialect> dcp_dialect(const Store& store) {
  const DcpStore* dcp = dcp_of(store);
  return dcp == nullptr ? std::nullopt : std::optional(dcp->dialect());
}

}  // namespace mckpt::impl
