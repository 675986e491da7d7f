// Reads the args of a training run and puts other values into their pickle. A value that cannot be changed is
// not an error: the checkpoint stays readable, and a warning names the field to set in the new run. Args that
// the disk does not give are an error, as all else that is not read.
#include "convert/facts/source_args.h"

#include <algorithm>

#include "convert/facts/args_patch.h"
#include "convert/facts/pattern_args.h"
#include "core/base/error.h"
#include "core/base/notes.h"
#include "io/dcp/packing.h"
#include "io/dcp/run/args.h"
#include "io/dcp/write/layout.h"
#include "io/dcp/write/record.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
#include "io/torch/zip.h"

namespace mckpt::impl {

namespace {

bool has_tensors(const TorchZip& zip) {
  return std::ranges::any_of(zip.archive().entries(),
                             [](const ZipEntry& e) { return e.name.find("/data/") != e.name.npos; });
}

// Calls fn(archive of the object); what it throws names the object and its file.
template <typename Fn>
std::string with_archive(const Store& store, const Object& object, Fn&& fn) {
  std::string path = file_path(store, object.file);
  try {
    StoreFiles files(store);
    std::shared_ptr<const ByteSource> record = open_object_record(files, object);
    return fn(TorchZip(*record, 64));
  } catch (Error& e) {
    if (e.offset() >= 0 && e.file().empty()) e.offset(object.record_offset + e.offset());
    throw e.default_tensor(object.name).default_file(path);
  }
}

std::string pickle_of(const TorchZip& zip) {
  std::vector<u8> bytes = zip.read_pickle();
  return {bytes.begin(), bytes.end()};
}

}  // namespace

std::string object_pickle(const Store& store, const Object& object) {
  return with_archive(store, object, [](const TorchZip& zip) {
    if (has_tensors(zip)) throw Error(Code::kUnsupportedTorchFile, "the object contains tensors");
    return pickle_of(zip);
  });
}

void add_carried(const Store& source, const Object& object, DcpLayout& layout, DcpName name, i32 rank,
                 std::vector<CarriedRecord>& records) {
  if (object.file >= 0 && source.traits.packed)
    return layout.add_object(std::move(name), rank, object_pickle(source, object));
  records.push_back(carry_object(source, object, layout, std::move(name), rank));
}

SourceArgs::SourceArgs(const Store& store) : store_(store), value_(args_of(store)) {}

std::optional<std::string> SourceArgs::patched(i64 object, std::span<const ArgChange> changes,
                                               Notes& notes) const {
  const Object& o = store_.objects()[object];
  if (changes.empty() || !holds_args(o.name)) return std::nullopt;
  auto kept = [&](std::string_view name) {
    notes.warn(cat("args: ", name, " keeps its old value; set it in the new run"));
  };
  try {
    return with_archive(store_, o, [&](const TorchZip& zip) {
      std::string pickle = pickle_of(zip);
      for (const ArgChange& change : changes)
        if (!put_value(pickle, change.name, change.value, kAlwaysThere)) kept(change.name);
      return has_tensors(zip) ? record_with_pickle(zip, pickle) : dcp_object_record(pickle);
    });
  } catch (const Error& e) {
    if (e.is_of_the_moment() || e.code() == Code::kReadFailed || e.code() == Code::kInterrupted) throw;
    for (const ArgChange& change : changes) kept(change.name);
    return std::nullopt;
  }
}

std::string SourceArgs::patched_file(std::span<const ArgChange> changes, Notes& notes) const {
  for (std::size_t i = 0; i < store_.objects().size(); i++)
    if (store_.objects()[i].name == kCommonFile)
      if (std::optional<std::string> archive = patched(static_cast<i64>(i), changes, notes)) return *archive;
  return "";
}

}  // namespace mckpt::impl
