#include "io/dcp.h"

#include <algorithm>
#include <charconv>
#include <mutex>
#include <optional>
#include <set>

#include "io/dcp_boxes.h"
#include "io/dcp_check.h"
#include "io/dcp_integrity.h"
#include "io/dcp_item.h"
#include "io/dcp_metadata.h"
#include "io/dcp_mixed.h"
#include "io/folder.h"
#include "io/parallel.h"
#include "io/store_files.h"

namespace mckpt {
namespace {

constexpr std::string_view kMetadata = ".metadata", kMarker = "metadata.json";
constexpr i64 kMostConfigBytes = i64{4} << 20;
// Files beside the data that hold one pickled object each: of older torch_dist saves, and of Megatron-Bridge.
constexpr std::string_view kCommonFile = "common.pt", kCommonItem = "common_state/";
constexpr std::string_view kObjectFiles[] = {kCommonFile, "train_state.pt"};

// The number in "__12_0.distcp"; -1 for another name.
i32 rank_of_file(std::string_view path) {
  path = path.substr(path.rfind('/') + 1);
  i32 rank = -1;
  if (!path.starts_with("__")) return -1;
  auto [end, error] = std::from_chars(path.data() + 2, path.data() + path.size(), rank);
  return error == std::errc() && end != path.data() + path.size() && *end == '_' ? rank : -1;
}

class DcpStore final : public Store {
 public:
  explicit DcpStore(const std::string& path);

  DcpDialect dialect() const { return dialect_; }

  i64 tensor_count() const override { return meta_.tensor_count(); }
  std::string_view name(i64 tensor) const override { return meta_.name(tensor); }
  DType dtype(i64 tensor) const override { return meta_.dtypes[static_cast<std::size_t>(tensor)]; }
  std::span<const i64> dims(i64 tensor) const override { return meta_.dims[tensor]; }
  i64 chunk_count(i64 tensor) const override { return static_cast<i64>(meta_.records[tensor].size()); }
  Chunk chunk(i64 tensor, i64 index) const override;
  ChunkData resolve(i64 tensor, i64 index) const override;
  std::shared_ptr<const PickleValue> object(i64 index) const override;
  void each_checksum(const std::function<void(const Checksum&)>& visit) const override;
  std::optional<std::vector<Finding>> check(int threads) const override;
  RunFacts run_facts_found() const;
  std::vector<Finding> damage(NamesOf names) const;

 private:
  void read_metadata(const Folder& folder);
  void list_files(const Folder& folder);
  void add_objects(const Folder& folder);
  void find_dialect(const Folder& folder);
  void look_at_torch_dist(const Folder& folder, bool has_marker);
  void collect_findings();
  void collect_facts();

  // Calls fn(record of the file, opened); what it throws gets the file and the place in it.
  template <typename Fn>
  auto with_record(i32 file, i64 offset, i64 bytes, Fn&& fn) const
      -> decltype(fn(std::declval<const ByteSource&>()));
  void check_objects(int threads, Findings& findings) const;

  DcpMetadata meta_;
  bool gathered_ = false;  // one .metadata names all that the files hold
  DcpDialect dialect_ = DcpDialect::kPlain;
  std::vector<i32> file_ranks_;
  std::optional<StoreFiles> open_files_;
};

DcpStore::DcpStore(const std::string& path) {
  Folder folder(path);
  root_ = folder.path();
  read_metadata(folder);
  list_files(folder);
  add_objects(folder);
  find_dialect(folder);
  collect_findings();
  collect_facts();
  open_files_.emplace(*this);
}

DcpMetadata read_one(const Folder& folder, const std::string& name) {
  InputFile file = folder.open_file(name);
  DcpMetadata out;
  with_file(cat(folder.path(), "/", name), [&] { out = parse_dcp_metadata(file.read(0, file.size())); });
  file.check_unchanged();
  return out;
}

// The rank that wrote "__12.metadata"; -1 for another name.
i32 rank_of_metadata(std::string_view name) {
  auto rank = numbered(name, "__");
  return rank && rank->before == "__" && rank->after == kMetadata ? static_cast<i32>(rank->number) : -1;
}

void DcpStore::read_metadata(const Folder& folder) {
  if (folder.has_file(kMetadata)) {
    meta_ = read_one(folder, std::string(kMetadata));
    gathered_ = true;
    add_fact("index", std::string(kMetadata));
    return;
  }
  std::vector<DcpMetadata> parts;
  bool has_data = false;
  for (const FolderEntry& e : folder.entries()) {
    has_data |= e.name.ends_with(".distcp");
    if (!e.folder && rank_of_metadata(e.name) >= 0) parts.push_back(read_one(folder, e.name));
  }
  if (parts.empty())
    throw Error(Code::kIncomplete, "the folder has no .metadata")
        .file(root_)
        .found(has_data ? "data files alone: the save was interrupted before it was complete"
                        : "no DCP folder");
  meta_ = merge_dcp_metadata(parts);
  add_fact("metadata",
           cat("one file for each of ", parts.size(), " ranks; objects are those of the lowest rank"));
}

void DcpStore::list_files(const Folder& folder) {
  std::set<i32> ranks;
  for (const std::string& path : meta_.files) {
    files_.push_back({path, folder.file_bytes(path).value_or(-1)});
    file_ranks_.push_back(rank_of_file(path));
    ranks.insert(file_ranks_.back());
  }
  // A rank without a tensor of its own leaves an empty file, or one of objects.
  for (const FolderEntry& e : folder.entries())
    if (!e.folder && e.name.ends_with(".distcp")) ranks.insert(rank_of_file(e.name));
  find_leftovers(folder, meta_.files, findings_);
  ranks.erase(-1);
  ranks_ = std::max<i64>(1, static_cast<i64>(ranks.size()));
}

void DcpStore::add_objects(const Folder& folder) {
  for (i64 o = 0; o < meta_.object_names.size(); o++) {
    const DcpRecord& r = meta_.object_records[static_cast<std::size_t>(o)];
    objects_.push_back({std::string(meta_.object_name(o)), r.file, r.offset, r.bytes, {}});
  }
  for (std::string_view name : kObjectFiles) {
    std::optional<i64> bytes = folder.file_bytes(name);
    if (!bytes) continue;
    objects_.push_back({std::string(name), static_cast<i32>(files_.size()), 0, *bytes, {}});
    files_.push_back({std::string(name), *bytes});
    file_ranks_.push_back(-1);
  }
}

void DcpStore::find_dialect(const Folder& folder) {
  DialectVotes votes;
  for (i64 t = 0; t < tensor_count(); t++) votes.tensor(name(t));
  for (const Object& o : objects_) votes.object(o.name);
  bool has_marker = folder.has_file(kMarker);
  dialect_ = votes.dialect(has_marker);
  format_ = dialect_ == DcpDialect::kPlain ? "DCP" : cat("DCP ", dialect_name(dialect_));
  if (dialect_ == DcpDialect::kTorchDist) look_at_torch_dist(folder, has_marker);
}

void DcpStore::look_at_torch_dist(const Folder& folder, bool has_marker) {
  if (!has_marker)
    findings_.push_back(
        {.code = Code::kIncomplete,
         .file = std::string(kMarker),
         .message = "the file is missing; Megatron writes it last and does not read a checkpoint without it",
         .warning = true});
  bool in_file = false, in_item = false;
  for (const Object& o : objects_) {
    in_file |= o.name == kCommonFile;
    in_item |= o.name.starts_with(kCommonItem);
  }
  if (in_file || in_item) add_fact("common state", in_file ? std::string(kCommonFile) : "an object");
  if (in_file && in_item)
    findings_.push_back(
        {.code = Code::kRecordUnused,
         .file = std::string(kCommonFile),
         .message = "the common state is here and in an object; Megatron reads this file alone",
         .warning = true});
  for (const FolderEntry& e : folder.entries())
    if (e.folder && e.name == "modelopt_state") add_fact("modelopt_state", "a folder");
  if (folder.has_file("integrity.json")) add_fact("integrity.json", "hashes of the files");
}

void DcpStore::collect_findings() {
  Findings findings;
  for (Finding& f : findings_) findings.add(std::move(f));
  for (Finding& f : meta_.findings) findings.add(std::move(f));
  meta_.findings.clear();
  check_boxes(meta_, findings);
  std::vector<i64> bytes;
  for (const StoreFile& f : files_) bytes.push_back(f.bytes);
  check_records(meta_, bytes, findings);
  if (gathered_) check_ends(meta_, bytes, findings);
  if (dialect_ == DcpDialect::kFsdpDtensor && meta_.stage_local_layers)
    findings.add(
        {.code = Code::kPipelineLoss,
         .file = std::string(kMetadata),
         .message =
             "the last pipeline stage named its layers from 0, so layers of different stages have one name "
             "and only one of each is stored",
         .help = "save with --ckpt-format torch_dist, or without pipeline parallelism"});
  findings_ = findings.take();
}

void DcpStore::collect_facts() {
  std::string_view folder = std::string_view(root_).substr(root_.rfind('/') + 1);
  if (auto iteration = numbered(folder, "iter_")) add_fact("iteration", cat(iteration->number));
  if (!meta_.version.empty()) add_fact("metadata version", escaped(meta_.version));
}

Chunk DcpStore::chunk(i64 tensor, i64 index) const {
  std::size_t rank = meta_.dims[tensor].size(), at = static_cast<std::size_t>(index) * rank;
  const DcpRecord& r = meta_.records[tensor][static_cast<std::size_t>(index)];
  Chunk c;
  c.offsets = meta_.offsets[tensor].subspan(at, rank);
  c.sizes = meta_.sizes[tensor].subspan(at, rank);
  c.file = r.file;
  c.rank = r.file < 0 ? -1 : file_ranks_[static_cast<std::size_t>(r.file)];
  c.record_offset = r.offset;
  c.record_bytes = r.bytes;
  return c;
}

// ---- Records

template <typename Fn>
auto DcpStore::with_record(i32 file, i64 offset, i64 bytes, Fn&& fn) const
    -> decltype(fn(std::declval<const ByteSource&>())) {
  try {
    std::shared_ptr<const InputFile> opened = open_files_->open(file);
    return fn(RecordSource(*opened, offset, bytes));
  } catch (Error& e) {
    // Readers of a record count from its beginning.
    if (e.offset() >= 0 && e.file().empty()) e.offset(offset + e.offset());
    throw e.default_file(file_path(*this, file));
  }
}

ChunkData DcpStore::resolve(i64 tensor, i64 index) const {
  const DcpRecord& r = meta_.records[tensor][static_cast<std::size_t>(index)];
  std::span<const i64> sizes = chunk(tensor, index).sizes;
  try {
    if (r.file < 0) throw Error(Code::kRecordMissing, cat("chunk ", index, " has no entry in storage_data"));
    if (r.transformed)
      throw Error(Code::kItemMismatch,
                  "the record went through a stream extension of torch (such as compression), which mckpt "
                  "does not have")
          .file(file_path(*this, r.file));
    DcpItem item = with_record(r.file, r.offset, r.bytes, [&](const ByteSource& record) {
      return read_dcp_item(record, dtype(tensor), sizes);
    });
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

std::shared_ptr<const PickleValue> DcpStore::object(i64 index) const {
  const Object& o = objects_[static_cast<std::size_t>(index)];
  if (o.file < 0) return nullptr;
  struct Value {
    std::shared_ptr<const Pickle> pickle;
    PickleValue root;
  };
  auto value = std::make_shared<Value>();
  value->pickle = with_record(o.file, o.record_offset, o.record_bytes,
                              [](const ByteSource& record) { return read_dcp_object(record); });
  value->root = value->pickle->root();
  return {value, &value->root};
}

void DcpStore::each_checksum(const std::function<void(const Checksum&)>& visit) const {
  auto of_record = [&](i32 file, i64 offset, i64 bytes, i64 tensor) {
    if (file < 0 || files_[static_cast<std::size_t>(file)].bytes < 0) return;
    try {
      with_record(file, offset, bytes, [&](const ByteSource& record) {
        each_item_checksum(record, [&](i64 at, i64 size, u32 crc, std::string_view name) {
          visit({.file = file,
                 .offset = offset + at,
                 .bytes = size,
                 .crc32 = crc,
                 .name = std::string(name),
                 .tensor = tensor});
        });
      });
    } catch (const Error&) {
      // An archive that cannot be opened is reported by whoever resolves the chunk or reads the object.
    }
  };
  for (const Object& o : objects_) of_record(o.file, o.record_offset, o.record_bytes, -1);
  for (i64 t = 0; t < tensor_count(); t++)
    for (const DcpRecord& r : meta_.records[t]) of_record(r.file, r.offset, r.bytes, t);
}

// ---- Checks

std::optional<std::vector<Finding>> DcpStore::check(int threads) const {
  Findings findings;
  check_objects(threads, findings);
  for (Finding& f : damage(NamesOf::kAll)) findings.add(std::move(f));
  for (Finding& f : check_integrity(root_)) findings.add(std::move(f));
  return findings.take();
}

std::vector<Finding> DcpStore::damage(NamesOf names) const {
  std::vector<Finding> found = check_names(*this, dialect_, run_facts_found(), names);
  for (Finding& f : check_mixed(*this)) found.push_back(std::move(f));
  return found;
}

void DcpStore::check_objects(int threads, Findings& findings) const {
  std::mutex mutex;
  parallel_for(static_cast<i64>(objects_.size()), threads, [&](int, i64 i) {
    const Object& o = objects_[static_cast<std::size_t>(i)];
    if (o.file < 0 || files_[static_cast<std::size_t>(o.file)].bytes < 0) return;
    std::vector<Finding> found;
    try {
      auto pickle = with_record(o.file, o.record_offset, o.record_bytes,
                                [](const ByteSource& record) { return read_dcp_object(record); });
      for (const PickleNote& note : pickle->notes())
        found.push_back({.code = note.code, .message = note.message, .warning = note.warning});
    } catch (const Error& e) {
      found.push_back(to_finding(e));
    }
    std::lock_guard lock(mutex);
    for (Finding& f : found) {
      f.tensor = o.name;
      f.file = file_label(*this, o.file);
      findings.add(std::move(f));
    }
  });
}

// From the args of Megatron-LM, the common state of torch_dist, or the configuration of Megatron-Bridge. What
// cannot be read is reported as an object, not here.
RunFacts DcpStore::run_facts_found() const {
  for (i64 i = 0; i < static_cast<i64>(objects_.size()); i++) {
    std::string_view name = objects_[static_cast<std::size_t>(i)].name;
    if (name != "args" && name != kCommonFile && !name.starts_with(kCommonItem)) continue;
    try {
      std::shared_ptr<const PickleValue> value = object(i);
      if (!value) continue;
      PickleValue root = *value;
      if (root.is(PickleValue::Kind::kList) && root.size() > 0) root = *root.items().begin();
      const PickleValue* args = name == "args" ? &root : root.find("args");
      if (args != nullptr) return run_facts(*args);
    } catch (const Error&) {
    }
  }
  try {
    InputFile config = Folder(root_).open_file("run_config.yaml");
    std::vector<u8> bytes = config.read(0, std::min<i64>(config.size(), kMostConfigBytes));
    return run_facts_of_yaml({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

RunFacts dcp_run_facts(const Store& store) {
  const auto* dcp = dynamic_cast<const DcpStore*>(&store);
  return dcp == nullptr ? RunFacts{} : dcp->run_facts_found();
}

std::vector<Finding> dcp_damage(const Store& store, NamesOf names) {
  const auto* dcp = dynamic_cast<const DcpStore*>(&store);
  return dcp == nullptr ? std::vector<Finding>{} : dcp->damage(names);
}

std::unique_ptr<Store> open_dcp(const std::string& path) { return std::make_unique<DcpStore>(path); }

std::optional<DcpDialect> dcp_dialect(const Store& store) {
  const auto* dcp = dynamic_cast<const DcpStore*>(&store);
  return dcp == nullptr ? std::nullopt : std::optional(dcp->dialect());
}

}  // namespace mckpt
