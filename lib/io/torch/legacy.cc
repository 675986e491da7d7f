// The form of torch.save before 1.6 (and of _use_new_zipfile_serialization=False): pickles, then storages.
//
//   pickle 1   0x1950a86a20f9469cfc6c       pickle 4   the objects
//   pickle 2   1001                         pickle 5   the keys of the storages, a list
//   pickle 3   {little_endian: True, ...}   then for each key: count of elements (8 bytes), the elements
//
// There is no directory and no checksum: where a storage is follows from the sizes of all those before it.
// Counts and elements are little-endian whatever machine wrote them: torch swaps both on a big-endian one,
// and reads its own note about the byte order nowhere.
#include <algorithm>

#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "io/file/bytes.h"
#include "io/file/file.h"
#include "io/pickle/arena.h"
#include "io/pickle/classes.h"
#include "io/pickle/pickle.h"
#include "io/pickle/render.h"
#include "io/store/finding.h"
#include "io/store/open/format_ids.h"
#include "io/torch/file.h"
#include "io/torch/table/shard_rows.h"

namespace mckpt::impl {
namespace {

constexpr i64 kProtocol = 1001;
constexpr i64 kFirstRead = i64{1} << 20;

[[noreturn]] void throw_bad(std::string_view message, i64 offset) {
  throw Error(Code::kBadTorchFile, cat("the legacy torch file is damaged: ", message)).offset(offset);
}

// Pickles one after the other. The length of a pickle shows only when it is read, so a prefix is read that
// grows until it has the whole pickle.
class Stream {
 public:
  explicit Stream(const ByteSource& file) : file_(file) {}

  std::shared_ptr<const Pickle> next(const PickleRules& rules) {
    for (i64 bytes = kFirstRead;; bytes *= 4) {
      bytes = std::min({bytes, file_.size() - at_, PickleArena::kMostBytes});
      try {
        auto pickle = Pickle::own(file_.read(at_, bytes), rules);
        at_ += pickle->bytes();
        return pickle;
      } catch (PickleTruncated& e) {
        if (bytes == PickleArena::kMostBytes)
          throw Error(Code::kPickleLimit, "the pickle is too large").offset(at_);
        if (bytes < file_.size() - at_) continue;
        e.offset(at_ + e.offset());
        throw;
      } catch (Error& e) {
        if (e.offset() >= 0) e.offset(at_ + e.offset());
        throw;
      }
    }
  }
  i64 at() const { return at_; }

 private:
  const ByteSource& file_;
  i64 at_ = 0;
};

// The root of a pickle that must be plain data, as those around the objects are in every real file. Throws
// what its notes say.
PickleValue plain(const std::shared_ptr<const Pickle>& pickle) {
  for (const PickleNote& note : pickle->notes()) throw Error(note.code, note.message).offset(note.offset);
  return pickle->root();
}

// The first three pickles.
void read_frame(Stream& stream) {
  PickleRules none;
  auto magic = stream.next(none), protocol = stream.next(none), info = stream.next(none);
  PickleValue m = plain(magic), p = plain(protocol);
  plain(info);
  if (!is_torch_magic(m)) throw_bad("it does not begin with torch's magic number", 0);
  if (!p.is_int() || p.as_int() != kProtocol)
    throw Error(Code::kUnsupportedTorchFile, "the legacy torch file is of an unknown protocol version")
        .expected(kProtocol)
        .found(pickle_line(p, 40));
}

// Adds a finding for a storage whose name has another number of parts than torch gives it in this form:
// ("storage", class, key, location, count, view). torch takes them one by one, and refuses the file.
void check_storage_ids(const Pickle& objects, std::vector<Finding>& findings) {
  constexpr i64 kParts = 6;
  for (PickleValue storage : objects.storages())
    if (i64 parts = storage.as_object().args.size(); parts != kParts)
      return findings.push_back(to_finding(
          Error(Code::kBadStorage, "the name of a storage has a wrong number of parts: torch refuses it")
              .expected(kParts)
              .found(parts)));
}

// Where each storage is, by its key. Moves `at` behind the last one. Throws kBadTorchFile, kBadStorage.
NameMap<std::string, i64> place(const ByteSource& file, PickleValue keys, const Pickle& objects, i64& at) {
  struct Known {
    i64 bytes, item_bytes;
  };
  NameMap<std::string_view, Known> known;
  for (PickleValue v : objects.storages()) {
    TorchStorage s = read_torch_storage(v);
    auto [it, is_new] = known.try_emplace(s.key, Known{s.bytes, dtype_bytes(s.dtype, 1)});
    if (!is_new) check_one_size(s, it->second.bytes);
  }
  if (!keys.is(PickleValue::Kind::kList)) throw_bad("the keys of its storages are not a list", at);
  NameMap<std::string, i64> offsets;
  for (PickleValue key : keys.items()) {
    std::string name(key.to_text("the key of a storage"));
    auto k = known.find(name);
    if (k == known.end()) throw_bad(cat("it lists a storage '", escaped(name), "' that no tensor names"), at);
    if (file.size() - at < 8)
      throw_bad(cat("the storage '", escaped(name), "' is missing: the file is truncated"), at);
    i64 count = static_cast<i64>(load_le<u64>(file.read(at, 8).data()));
    i64 bytes = k->second.bytes;
    if (count < 0 || count != bytes / k->second.item_bytes)
      throw Error(Code::kBadStorage,
                  cat("the storage '", escaped(name), "' has another size than the pickle says (mismatch)"))
          .offset(at)
          .expected(cat(bytes / k->second.item_bytes, " elements"))
          .found(count);
    at += 8;
    if (bytes > file.size() - at)
      throw_bad(cat("the storage '", escaped(name), "' of ", bytes, " bytes is truncated"), at);
    if (!offsets.try_emplace(std::move(name), at).second) throw_bad("it lists a storage twice", at);
    at += bytes;
  }
  return offsets;
}

}  // namespace

TorchFile read_torch_legacy(const ByteSource& file, ShardRecords records) {
  Stream stream(file);
  read_frame(stream);
  i64 begin = stream.at();
  auto rows = std::make_shared<ShardRows>();
  PickleVisitor* visitor = records == ShardRecords::kTakenOut ? rows.get() : nullptr;
  auto objects = stream.next({.storages = true, .visitor = visitor});
  i64 end = stream.at();
  auto keys = stream.next({});
  TorchFile out{.table = TorchTable(objects, rows), .format = Format::kTorchLegacy};
  out.pickle_offset = begin;
  out.pickle_bytes = end - begin;
  check_storage_ids(*objects, out.findings);
  i64 at = stream.at();
  NameMap<std::string, i64> offsets = place(file, plain(keys), *objects, at);
  out.table.place_storages([&](const TorchStorage& s) {
    auto it = offsets.find(std::string(s.key));
    if (it == offsets.end())
      throw Error(Code::kBadStorage,
                  cat("the storage '", escaped(s.key), "' is missing from the file's list of keys"));
    return it->second;
  });
  if (at != file.size())
    out.findings.push_back({.code = Code::kUnusedRecord,
                            .message = cat(file.size() - at, " trailing bytes follow the last storage"),
                            .offset = at,
                            .warning = true});
  out.facts.emplace_back("pickle", cat("protocol ", objects->protocol(), ", ", end - begin, " bytes"));
  return out;
}

}  // namespace mckpt::impl
