// The zip form of torch.save:
//
//   NAME/data.pkl        the objects; tensors are views of storages, which are named by a key
//   NAME/byteorder       "little" or "big" (torch 2.1 and newer)
//   NAME/data/KEY        the bytes of one storage, not compressed
//   NAME/version, NAME/.data/serialization_id, NAME/.format_version, NAME/.storage_alignment
#include <algorithm>

#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "io/file/file.h"
#include "io/store/checksum.h"
#include "io/store/open/format_ids.h"
#include "io/torch/file.h"
#include "io/torch/records.h"
#include "io/torch/table/shard_rows.h"
#include "io/torch/zip.h"

namespace mckpt::impl {
namespace {

// The folder in an archive that torch.save wrote to an open file, whose name it does not know.
constexpr std::string_view kUnnamedTop = "archive/";

// The folder that everything is in: torch takes the folder of the first record.
std::string_view top_folder(const ZipArchive& zip) {
  if (zip.entries().empty())
    throw Error(Code::kBadTorchFile, "the zip archive is empty: it has no data.pkl")
        .help("save the file again");
  std::string_view name = zip.entries()[0].name;
  return name.substr(0, name.find('/') == name.npos ? 0 : name.find('/') + 1);
}

// Throws kUnsupportedTorchFile for TorchScript, which stores a program, kBadTorchFile for other archives.
const ZipEntry& find_pickle(const ZipArchive& zip, std::string_view top) {
  if (zip.find(cat(top, "constants.pkl")) != nullptr)
    throw Error(Code::kUnsupportedTorchFile,
                "this is a TorchScript archive (torch.jit.save), which holds a program")
        .help("load it with torch.jit.load where it is trusted, and torch.save its state_dict()");
  if (const ZipEntry* e = zip.find(cat(top, "data.pkl"))) return *e;
  std::vector<std::string_view> names;
  for (const ZipEntry& e : zip.entries()) names.push_back(e.name);
  throw Error(Code::kBadTorchFile, "data.pkl is missing: this zip archive was not written by torch.save")
      .expected(cat(escaped(top), "data.pkl"))
      .found(listed(names));
}

// Throws kBadStorage unless every storage is named as torch names the storages of an archive: ("storage",
// class, key, location, size).
void check_storage_ids(const Pickle& pickle) {
  constexpr i64 kParts = 5;
  for (PickleValue storage : pickle.storages())
    if (i64 parts = storage.as_object().args.size(); parts != kParts)
      throw Error(Code::kBadStorage, "the name of a storage has a wrong number of parts: torch refuses it")
          .expected(kParts)
          .found(parts);
}

// The use of each record of an archive, in one pass over its directory: its checksum, and whether any tensor
// uses it.
class RecordList {
 public:
  RecordList(const TorchZip& zip, TorchFile& out)
      : torch_(zip), zip_(zip.archive()), top_(zip.top()), data_(cat(top_, "data/")), out_(out) {
    tensors_.reserve(out.table.storages().size());
    for (const TorchTable::Storage& s : out.table.storages()) tensors_[s.id.key] = s.tensor;
  }

  void run() {
    if (zip_.has_checksums()) out_.checksums.reserve(zip_.entries().size());
    for (const ZipEntry& e : zip_.entries()) add(e);
    report_unused();
    report_unfit();
    if (!zip_.has_checksums())
      out_.findings.push_back({.code = Code::kNoChecksums,
                               .message = "the archive was written without checksums",
                               .warning = true});
    std::sort(out_.checksums.begin(), out_.checksums.end(),
              [](const Checksum& a, const Checksum& b) { return a.offset < b.offset; });
  }

 private:
  void add(const ZipEntry& e) {
    bool is_storage = e.name.starts_with(data_);
    auto tensor = is_storage ? tensors_.find(e.name.substr(data_.size())) : tensors_.end();
    if (is_storage ? tensor == tensors_.end() : !e.name.starts_with(top_)) unused_.push_back(e.name);
    if (!e.name.starts_with(top_) && e.name.ends_with("/data.pkl"))
      throw Error(Code::kBadTorchFile, "the archive has a second data.pkl (duplicate)")
          .found(escaped(e.name));
    // The checksum of a deflated record is of what it inflates to, and was looked at when it was read.
    if (zip_.has_checksums() && !e.deflated)
      out_.checksums.push_back({.offset = e.data_offset,
                                .bytes = e.stored_bytes,
                                .crc32 = e.crc32,
                                .name = std::string(e.name),
                                .tensor = tensor == tensors_.end() ? -1 : tensor->second});
  }

  // Records that nothing in the pickle names, and records outside of the folder: dead weight, but no error.
  void report_unused() {
    if (unused_.empty()) return;
    NameSet<std::string> named;
    for (PickleValue s : out_.table.pickle()->storages())
      if (PickleValue key = s.as_object().args.at(2); key.is(PickleValue::Kind::kText))
        named.insert(cat(data_, key.text()));
    std::erase_if(unused_, [&](std::string_view name) { return named.contains(std::string(name)); });
    if (unused_.empty()) return;
    out_.findings.push_back({.code = Code::kUnusedRecord,
                             .message = cat("no tensor uses these records of the archive: ", listed(unused_)),
                             .warning = true});
  }

  // Storages that the pickle has but no tensor of the table: torch reads them too, and refuses the file where
  // the record of one is missing or has another size.
  void report_unfit() {
    for (PickleValue s : out_.table.pickle()->storages()) {
      PickleValue key = s.as_object().args.at(2);
      if (key.is(PickleValue::Kind::kText) && tensors_.contains(key.text())) continue;
      try {
        static_cast<void>(torch_.storage(read_torch_storage(s)));
      } catch (const Error& e) {
        return out_.findings.push_back(to_finding(e));
      }
    }
  }

  const TorchZip& torch_;
  const ZipArchive& zip_;
  std::string_view top_;
  std::string data_;
  TorchFile& out_;
  NameMap<std::string_view, i64> tensors_;  // the first one of each storage
  std::vector<std::string_view> unused_;
};

}  // namespace

TorchZip::TorchZip(const ByteSource& source, i64 most_trailing_bytes)
    : zip_(source, most_trailing_bytes),
      top_(top_folder(zip_)),
      data_(cat(top_, "data/")),
      pickle_(&find_pickle(zip_, top_)),
      big_endian_(is_big_endian_archive(zip_, top_)) {}

std::vector<u8> TorchZip::read_pickle() const {
  // torch compresses nothing; deflate makes a gigabyte of a megabyte.
  constexpr i64 kInflated = i64{16} << 20;
  i64 most = PickleArena::kMostBytes;
  if (pickle_->deflated) most = std::min(most, kInflated + pickle_->stored_bytes);
  try {
    return zip_.read(*pickle_, most);
  } catch (Error& e) {
    if (e.code() == Code::kUnsupportedZip && pickle_->deflated)
      e.help(
          "the record is compressed, which torch does not do: unpack the archive and store it uncompressed (zip -0)");
    throw;
  }
}

void TorchZip::check_loads(const Pickle& pickle) const {
  check_torch_records(zip_, top_);
  check_storage_ids(pickle);
}

const ZipEntry& TorchZip::storage(const TorchStorage& s) const {
  const ZipEntry* e = zip_.find(cat(data_, s.key));
  if (e == nullptr)
    throw Error(Code::kBadStorage, cat("the storage data/", escaped(s.key), " is missing from the archive"));
  if (e->bytes != s.bytes)
    throw Error(Code::kBadStorage,
                cat("the storage data/", escaped(s.key), " has another size than the pickle says (mismatch)"))
        .offset(e->data_offset)
        .expected(cat(s.bytes, " bytes"))
        .found(cat(e->bytes, " bytes"));
  return *e;
}

// A fault that keeps torch from loading the file is a finding: the tensors can be read all the same.
TorchFile read_torch_zip(const ByteSource& file, ShardRecords records) {
  TorchZip zip(file);
  const ZipEntry& data = zip.pickle();
  auto rows = std::make_shared<ShardRows>();
  PickleRules rules = zip.pickle_rules();
  if (records == ShardRecords::kTakenOut) rules.visitor = rows.get();
  auto pickle = Pickle::own(zip.read_pickle(), rules);
  TorchFile out{.table = TorchTable(pickle, rows), .format = Format::kTorchZip};
  try {
    zip.check_loads(*pickle);
  } catch (const Error& e) {
    out.findings.push_back(to_finding(e));
  }
  out.pickle_offset = data.data_offset;
  out.pickle_bytes = data.stored_bytes;
  out.big_endian = zip.big_endian();
  if (zip.top() != kUnnamedTop) out.saved_name = zip.top().substr(0, zip.top().find('/'));
  if (pickle->bytes() != data.bytes)
    out.findings.push_back(
        {.code = Code::kUnusedRecord,
         .message = cat(data.bytes - pickle->bytes(), " trailing bytes follow the pickle (after STOP)"),
         .offset = data.data_offset + pickle->bytes(),
         .warning = true});
  out.table.place_storages([&](const TorchStorage& s) {
    const ZipEntry& e = zip.storage(s);
    if (e.deflated)
      throw Error(Code::kUnsupportedZip,
                  cat("the storage data/", escaped(s.key), " is compressed: unsupported"))
          .help("save it again; torch.save never compresses");
    return e.data_offset;
  });
  RecordList(zip, out).run();
  out.facts.emplace_back("pickle", cat("protocol ", pickle->protocol(), ", ", data.bytes, " bytes"));
  if (out.big_endian) out.facts.emplace_back("byte order", "big-endian");
  return out;
}

}  // namespace mckpt::impl
