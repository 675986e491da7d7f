// Checks data type, size and places of a dataset as the helper program reported them.
#include "io/hdf5/layout.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/items/dtype.h"
#include "core/items/shape.h"
#include "io/hdf5/answer.h"
#include "io/hdf5/filters.h"
#include "io/hdf5/wire.h"

namespace mckpt::impl {
namespace {

using hdf5_wire::Storage;
using hdf5_wire::TypeClass;

// Values that were never written take no space, so a file of a kilobyte could claim petabytes. Written
// values can be compressed to a thousandth of their size; beyond that, this much may be missing.
constexpr i64 kMostDeflated = 1032, kMostUnwritten = i64{1} << 30;

// A float by its fields. numbers: precision, offset, (sign of integers), sign at, exponent at, exponent
// bits, mantissa at, mantissa bits, bias.
struct FloatRow {
  DType dtype;
  i64 bytes;
  std::array<i64, hdf5_wire::kTypeNumbers> numbers;
};
constexpr FloatRow kFloats[] = {
    {DType::kF64, 8, {64, 0, 0, 63, 52, 11, 0, 52, 1023}},
    {DType::kF32, 4, {32, 0, 0, 31, 23, 8, 0, 23, 127}},
    {DType::kF16, 2, {16, 0, 0, 15, 10, 5, 0, 10, 15}},
    {DType::kBF16, 2, {16, 0, 0, 15, 7, 8, 0, 7, 127}},
    {DType::kF8E4M3, 1, {8, 0, 0, 7, 3, 4, 0, 3, 7}},
    {DType::kF8E5M2, 1, {8, 0, 0, 7, 2, 5, 0, 2, 15}},
};

[[noreturn]] void throw_unsupported(std::string message) {
  throw Error(Code::kUnsupportedHdf5, std::move(message));
}

Error bad(std::string message) { return Error(Code::kBadHdf5, std::move(message)); }

// Throws kUnsupportedHdf5 for floats that torch does not have.
DType float_dtype(const Hdf5Type& t, i64 bytes) {
  for (const FloatRow& row : kFloats)
    if (row.bytes == bytes && row.numbers == t.numbers) return row.dtype;
  throw_unsupported(cat("floats of ", t.numbers[0], " bits in ", bytes, " bytes, ", t.numbers[5],
                        " of them exponent (bias ", t.numbers[8], "), are not a data type of torch (dtype)"));
}

DType complex_dtype(const Hdf5Type& t) {
  switch (float_dtype(t, t.bytes / 2)) {
    case DType::kF16:
      return DType::kC32;
    case DType::kF32:
      return DType::kC64;
    case DType::kF64:
      return DType::kC128;
    default:
      throw_unsupported("complex numbers of such floats are not a data type of torch");
  }
}

// Integers that fill their bytes.
DType integer_dtype(const Hdf5Type& t) {
  bool whole = t.numbers[0] == t.bytes * 8 && t.numbers[1] == 0, negative = t.numbers[2] != 0;
  if (whole) switch (t.bytes) {
      case 1:
        return negative ? DType::kI8 : DType::kU8;
      case 2:
        return negative ? DType::kI16 : DType::kU16;
      case 4:
        return negative ? DType::kI32 : DType::kU32;
      case 8:
        return negative ? DType::kI64 : DType::kU64;
    }
  throw_unsupported(
      cat("integers of ", t.numbers[0], " bits in ", t.bytes, " bytes are not a data type of torch"));
}

i64 product(std::span<const i64> sizes, i64 first, const char* what) {
  for (i64 n : sizes) first = checked_mul(first, n, what);
  return first;
}

// Throws kBadHdf5. Both count from the superblock.
void check_inside(i64 offset, i64 bytes, i64 file_bytes) {
  if (offset > file_bytes || bytes > file_bytes - offset)
    throw bad("the address of the data is beyond the end of the file")
        .expected(cat("at most ", file_bytes, " bytes behind the superblock"))
        .found(cat("bytes ", offset, " to ", offset, " + ", bytes));
}

void check_contiguous(const Hdf5Dataset& d, i64 bytes, i64 file_bytes) {
  if (d.offset < 0) return;
  if (d.bytes != bytes)
    throw bad("the size of the data in the file is not that of the dims and the type")
        .expected(bytes)
        .found(d.bytes);
  check_inside(d.offset, d.bytes, file_bytes);
}

// pre: chunks ascend by their place; checked here as well.
void check_chunks(const Hdf5Dataset& d, i64 file_bytes) {
  for (i64 n : d.chunk_dims)
    if (n <= 0) throw bad("a chunk has no items");
  check_filters(d.filters);
  i64 places = chunk_places(d), raw = chunk_bytes(d), before = -1;
  for (const Hdf5Chunk& c : d.chunks) {
    if (c.place <= before || c.place >= places) throw bad("a chunk is outside of the dataset");
    before = c.place;
    check_inside(c.offset, c.bytes, file_bytes);
    if (i64 exact = exact_stored_bytes(d.filters, c.skipped, raw); exact >= 0 && c.bytes != exact)
      throw bad("a chunk in the file does not have the size that its dataset says")
          .expected(exact)
          .found(c.bytes);
  }
}

// Throws kBadHdf5 for a dataset of which nearly all was never written.
void check_unwritten(const Hdf5Dataset& d, i64 bytes) {
  i64 stored = stored_bytes(d);
  if (bytes <= kMostUnwritten || (bytes - kMostUnwritten) / kMostDeflated < stored) return;
  throw bad("the size of the dataset is beyond the limit for the few bytes that the file stores of it")
      .expected(cat("at most ", kMostUnwritten, " bytes more than its ", stored, " bytes can hold"))
      .found(cat(bytes, " bytes, nearly all of them never written"));
}

// A range of the file that a dataset uses.
struct Stored {
  i64 offset, bytes;
  std::size_t dataset;
};

// All ranges, by offset.
std::vector<Stored> stored_stretches(std::span<const Hdf5Dataset> datasets) {
  std::vector<Stored> all;
  for (std::size_t i = 0; i < datasets.size(); i++) {
    const Hdf5Dataset& d = datasets[i];
    if (d.storage == Storage::kContiguous && d.offset >= 0 && d.bytes > 0)
      all.push_back({d.offset, d.bytes, i});
    for (const Hdf5Chunk& c : d.chunks)
      if (c.bytes > 0) all.push_back({c.offset, c.bytes, i});
  }
  std::sort(all.begin(), all.end(), [](const Stored& a, const Stored& b) {
    return std::pair(a.offset, a.dataset) < std::pair(b.offset, b.dataset);
  });
  return all;
}

}  // namespace

DType hdf5_dtype(const Hdf5Type& t) {
  switch (t.kind) {
    case TypeClass::kInteger:
      return integer_dtype(t);
    case TypeClass::kFloat:
      return float_dtype(t, t.bytes);
    case TypeClass::kBool:
      if (t.bytes == 1) return DType::kBool;
      break;
    case TypeClass::kComplex:
      return complex_dtype(t);
  }
  throw_unsupported("this type is not a data type of torch");
}

Hdf5Type hdf5_type(DType dtype) {
  const DTypeInfo& info = dtype_info(dtype);
  i64 bytes = std::max(1, info.bits / 8);
  if (dtype == DType::kBool) return {TypeClass::kBool, 1, false, {8, 0, 1}};
  for (const FloatRow& row : kFloats) {
    if (row.dtype == dtype) return {TypeClass::kFloat, bytes, false, row.numbers};
    if (info.kind == DTypeKind::kComplex && row.bytes * 2 == bytes && row.dtype != DType::kBF16)
      return {TypeClass::kComplex, bytes, false, row.numbers};
  }
  return {TypeClass::kInteger, bytes, false, {bytes * 8, 0, info.kind == DTypeKind::kSigned}};
}

i64 chunk_bytes(const Hdf5Dataset& d) { return product(d.chunk_dims, d.type.bytes, "the size of a chunk"); }

i64 chunk_places(const Hdf5Dataset& d) {
  i64 places = 1;
  for (std::size_t i = 0; i < d.dims.size(); i++)
    places = checked_mul(places, ceil_div(d.dims[i], d.chunk_dims[i]), "the number of chunks");
  return places;
}

i64 stored_bytes(const Hdf5Dataset& d) {
  if (d.storage == Storage::kCompact) return static_cast<i64>(d.compact.size());
  if (d.storage == Storage::kContiguous) return d.offset < 0 ? 0 : d.bytes;
  i64 bytes = 0;
  for (const Hdf5Chunk& c : d.chunks) bytes = checked_add(bytes, c.bytes, "the stored size of a dataset");
  return bytes;
}

bool partly_unwritten(const Hdf5Dataset& d) {
  if (Shape(d.dims).items() == 0 || d.storage == Storage::kCompact) return false;
  if (d.storage == Storage::kContiguous) return d.offset < 0;
  return static_cast<i64>(d.chunks.size()) < chunk_places(d);
}

void check_dataset(const Hdf5Dataset& d, i64 file_bytes) {
  DType dtype = hdf5_dtype(d.type);
  i64 bytes = dtype_bytes(dtype, Shape(d.dims).items());
  if (!d.fill.empty() && static_cast<i64>(d.fill.size()) != d.type.bytes)
    throw bad("the fill value is not one element").expected(d.type.bytes).found(d.fill.size());
  switch (d.storage) {
    case Storage::kContiguous:
      check_contiguous(d, bytes, file_bytes);
      break;
    case Storage::kCompact:
      if (static_cast<i64>(d.compact.size()) != bytes)
        throw bad("the size of the data in the header is not that of the dims and the type")
            .expected(bytes)
            .found(d.compact.size());
      break;
    case Storage::kChunked:
      check_chunks(d, file_bytes);
      break;
    case Storage::kVirtual:
      throw_unsupported("a virtual dataset: the data are in external files");
  }
  check_unwritten(d, bytes);
}

// Walks the ranges by offset and compares each with the one before it that ends last.
std::vector<std::pair<std::size_t, std::size_t>> overlapping(std::span<const Hdf5Dataset> datasets) {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  std::vector<char> listed(datasets.size());
  Stored furthest{0, 0, 0};  // that which ends last among those before
  for (const Stored& s : stored_stretches(datasets)) {
    bool shared = s.offset < furthest.offset + furthest.bytes;
    // Two names of one dataset have each stretch twice; it is one dataset, so nothing is shared.
    bool twin = s.dataset != furthest.dataset && s.offset == furthest.offset && s.bytes == furthest.bytes &&
                datasets[s.dataset].address == datasets[furthest.dataset].address;
    if (shared && !twin && !std::exchange(listed[s.dataset], 1))
      pairs.emplace_back(s.dataset, furthest.dataset);
    if (s.offset + s.bytes > furthest.offset + furthest.bytes) furthest = s;
  }
  return pairs;
}

}  // namespace mckpt::impl
