// What mckpt-hdf5, the program that opens HDF5 files, answers: a magic and records, each a byte of kind and
// its fields, up to a kEnd. Numbers are u64, little-endian; texts are their length, a number, and their
// bytes.
//
//   kMagic  kGroup "encoder" 800  kDataset "encoder/w" 1400 <type> <dimensions> <storage>  ...  kEnd
//
// Shared by both programs; nothing here but constants.
#pragma once

#include <cstdint>
#include <string_view>

namespace mckpt::impl::hdf5_wire {

inline constexpr std::string_view kMagic = "mckpt-hdf5 answer 1\n";

enum class Record : std::uint8_t {
  kGroup = 'G',    // name, address
  kDataset = 'D',  // name, address, type, dimensions, fill value (text; empty: zeros), storage
  kAttribute =
      'A',  // name of the object ("": the root), name, type ("int", "float", "bool", "str", "": none), value
  kOther = 'O',     // name, 1 where values were left out or 0, what it is: something that is no tensor
  kSoftLink = 'S',  // name, target
  kFault = 'F',     // name ("": the file), Blame, words
  kEnd = 'Z',       // the number of records before it
};

enum class Blame : std::uint8_t { kDamaged = 0, kUnsupported = 1 };

// A type: class, bytes of an element, byte order, and nine numbers, those of H5Tget_precision, _offset,
// _sign, _fields (sign, exponent at and bits, mantissa at and bits) and _ebias. kComplex: the numbers are
// those of one of the parts.
enum class TypeClass : std::uint8_t { kInteger = 1, kFloat, kBool, kComplex };
enum class Order : std::uint8_t { kLittle = 0, kBig };
inline constexpr int kTypeNumbers = 9;

// Dimensions: how many, and each.

// A storage. kContiguous: offset (or kUnwritten), bytes. kCompact: the bytes, as text. kChunked: one size a
// dimension; the number of filters, and of each its id and its first parameter; the number of chunks, and of
// each its position in the grid (row-major, ascending), its offset, its stored bytes and the mask of the
// filters that it skips.
enum class Storage : std::uint8_t { kContiguous = 0, kCompact, kChunked };
inline constexpr std::uint64_t kUnwritten = UINT64_MAX;

// Offsets count from the superblock, whose place the program gets as an argument.

// How the program ends when it does not answer.
inline constexpr int kExitNoSandbox = 71, kExitUsage = 64;

}  // namespace mckpt::impl::hdf5_wire
