// Parses the bytes that the helper program wrote; every count is checked against the bytes that are left
// before it is used.
#include "io/hdf5/answer.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "io/file/bytes.h"

namespace mckpt::impl {
namespace {

using hdf5_wire::Record;
using hdf5_wire::Storage;
using hdf5_wire::TypeClass;

// Limits of names and texts, and the bytes that a chunk or filter takes in the answer.
constexpr i64 kMostNameBytes = i64{64} << 10, kMostTextBytes = i64{1} << 20;
constexpr i64 kMostFilters = 32;  // the library's own limit
constexpr i64 kChunkBytes = 4 * sizeof(u64), kFilterBytes = 2 * sizeof(u64);

// Reads the answer front to back; used once.
class Parser {
 public:
  explicit Parser(std::span<const u8> answer) : rest_(answer), whole_(answer.size()) {}

  Hdf5Answer parse() {
    expect_magic();
    i64 records = 0;
    while (record()) records++;
    if (size() != records) fail("the number of records is wrong");
    if (!rest_.empty()) fail("bytes follow the last record");
    return std::move(out_);
  }

 private:
  // Throws kHelperFailed, with the place in the answer.
  [[noreturn]] void fail(std::string_view what) const {
    throw Error(Code::kHelperFailed, "the answer of mckpt-hdf5 makes no sense")
        .found(cat(what, ", at byte ", static_cast<i64>(whole_ - rest_.size()), " of ",
                   static_cast<i64>(whole_)));
  }

  std::span<const u8> take(i64 bytes) {
    if (bytes > static_cast<i64>(rest_.size())) fail("the answer is cut short");
    std::span<const u8> taken = rest_.first(static_cast<std::size_t>(bytes));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }

  u8 byte() { return take(1)[0]; }
  u64 number() { return load_le<u64>(take(sizeof(u64)).data()); }
  // A number of bytes or things; one beyond 63 bits becomes the largest.
  i64 size() { return static_cast<i64>(std::min<u64>(number(), std::numeric_limits<i64>::max())); }
  // The number of things that follow, each of which takes at least `bytes_each` of the answer.
  std::size_t count(i64 most, i64 bytes_each) {
    i64 n = size();
    if (n > most || n > static_cast<i64>(rest_.size()) / bytes_each) fail("a count is larger than possible");
    return static_cast<std::size_t>(n);
  }
  std::string text(i64 most = kMostTextBytes) {
    std::span<const u8> bytes = take(static_cast<i64>(count(most, 1)));
    return {bytes.begin(), bytes.end()};
  }
  // A path may be twice as long as a name.
  std::string name() { return text(kMostNameBytes + kMostNameBytes); }
  std::vector<u8> blob() {
    std::span<const u8> bytes = take(static_cast<i64>(count(kMostTextBytes, 1)));
    return {bytes.begin(), bytes.end()};
  }
  template <typename Enum>
  Enum one_of(Enum first, Enum last) {
    u8 v = byte();
    if (v < static_cast<u8>(first) || v > static_cast<u8>(last))
      fail("a field has a value that is not one of its choices");
    return static_cast<Enum>(v);
  }

  void expect_magic() {
    std::span<const u8> magic = take(static_cast<i64>(hdf5_wire::kMagic.size()));
    if (!std::equal(magic.begin(), magic.end(), hdf5_wire::kMagic.begin(),
                    [](u8 a, char b) { return a == static_cast<u8>(b); }))
      fail("the first bytes are wrong: the program is of another version");
  }

  // Reads one record. False at the last one, whose number is left to read. Fields are read in the order in
  // which the calls are written here.
  bool record() {
    switch (static_cast<Record>(byte())) {
      case Record::kGroup:
        out_.groups.push_back(name());
        number();
        return true;
      case Record::kDataset:
        dataset(out_.datasets.emplace_back());
        return true;
      case Record::kAttribute:
        out_.attributes.push_back({name(), name(), text(), text(), text(), text()});
        return true;
      case Record::kOther: {
        Hdf5Other& other = out_.others.emplace_back();
        other.name = name();
        other.values_left_out = byte() != 0;
        other.what = text();
        return true;
      }
      case Record::kSoftLink:
        out_.links.push_back({name(), name()});
        return true;
      case Record::kFault: {
        Hdf5Fault& fault = out_.faults.emplace_back();
        fault.name = name();
        fault.blame = one_of(hdf5_wire::Blame::kDamaged, hdf5_wire::Blame::kUnsupported);
        fault.words = text();
        return true;
      }
      case Record::kEnd:
        return false;
    }
    fail("a record is of an unknown kind");
  }

  void dataset(Hdf5Dataset& d) {
    d.name = name();
    if (d.name.empty()) fail("a dataset has no name");
    d.address = size();
    d.type.kind = one_of(TypeClass::kInteger, TypeClass::kComplex);
    d.type.bytes = size();
    d.type.big_endian = one_of(hdf5_wire::Order::kLittle, hdf5_wire::Order::kBig) == hdf5_wire::Order::kBig;
    for (i64& n : d.type.numbers) n = size();
    d.dims.resize(count(Shape::kMaxRank, sizeof(u64)));
    for (i64& n : d.dims) n = size();
    d.fill = blob();
    d.storage = one_of(Storage::kContiguous, Storage::kVirtual);
    storage(d);
  }

  void storage(Hdf5Dataset& d) {
    switch (d.storage) {
      case Storage::kContiguous: {
        u64 offset = number();
        d.offset = offset == hdf5_wire::kUnwritten ? -1 : static_cast<i64>(std::min<u64>(offset, INT64_MAX));
        d.bytes = size();
        return;
      }
      case Storage::kCompact:
        d.compact = blob();
        return;
      case Storage::kChunked:
        return chunks(d);
      case Storage::kVirtual:
        return mappings(d);
    }
  }

  void chunks(Hdf5Dataset& d) {
    if (d.dims.empty()) fail("a scalar has chunks");
    d.chunk_dims.resize(d.dims.size());
    for (i64& n : d.chunk_dims) n = size();
    d.filters.resize(count(kMostFilters, kFilterBytes));
    for (Hdf5Filter& f : d.filters) f = {size(), size()};
    d.chunks.resize(count(INT64_MAX, kChunkBytes));
    for (Hdf5Chunk& c : d.chunks) c = {size(), size(), size(), size()};
  }

  void mappings(Hdf5Dataset& d) {
    std::size_t n = count(INT64_MAX, static_cast<i64>((2 + 2 * d.dims.size()) * sizeof(u64)));
    for (; n > 0; n--) {
      Hdf5Mapping& m = d.mappings.emplace_back();
      m.file = name();
      m.dataset = name();
      m.offsets.resize(d.dims.size());
      for (i64& v : m.offsets) v = size();
      m.sizes.resize(d.dims.size());
      for (i64& v : m.sizes) v = size();
    }
  }

  std::span<const u8> rest_;
  std::size_t whole_;
  Hdf5Answer out_;
};

}  // namespace

Hdf5Answer parse_hdf5_answer(std::span<const u8> answer) { return Parser(answer).parse(); }

}  // namespace mckpt::impl
