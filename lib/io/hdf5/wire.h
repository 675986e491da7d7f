// The answer of mckpt-hdf5, the program that opens and composes HDF5 files: a magic and records, each a byte
// of kind and its fields, up to a kEnd. Numbers are u64, little-endian; texts are their length, a number, and
// their bytes.
//
//   kMagic  kGroup "encoder" 800  kDataset "encoder/w" 1400 <type> <dimensions> <storage>  ...  kEnd
//
// Shared by both programs; nothing here but constants.
#pragma once

#include <cstdint>
#include <string_view>

namespace mckpt::impl::hdf5_wire {

inline constexpr std::string_view kMagic = "mckpt-hdf5 answer 2\n";

enum class Record : std::uint8_t {
  kGroup = 'G',    // name, address
  kDataset = 'D',  // name, address, type, dimensions, fill value (text; empty: zeros), storage
  // Name of the object ("": the root), name, type ("int", "float", "bool", "str", "": none), value, and the
  // whole value to compare by: what its bytes are ("": they are not here), and the bytes.
  kAttribute = 'A',
  kOther = 'O',     // name, 1 where values were left out or 0, what it is: something that is not a tensor
  kSoftLink = 'S',  // name, target
  kFault = 'F',     // name ("": the file), Blame, words
  kEnd = 'Z',       // the number of records before it
};

enum class Blame : std::uint8_t { kDamaged = 0, kUnsupported = 1 };

// A type: class, bytes of an element, byte order, and nine numbers: H5Tget_precision, _offset, _sign, _fields
// (sign, exponent at and bits, mantissa at and bits) and _ebias. kComplex: the numbers describe one of the
// parts.
enum class TypeClass : std::uint8_t { kInteger = 1, kFloat, kBool, kComplex };
enum class Order : std::uint8_t { kLittle = 0, kBig };
inline constexpr int kTypeNumbers = 9;

// Dimensions: how many, and each.

// A storage. kContiguous: offset (or kUnwritten), bytes. kCompact: the bytes, as text. kChunked: one size a
// dimension; the number of filters, and of each its id and its first parameter; the number of chunks, and of
// each its position in the grid (row-major, ascending), its offset, its stored bytes and the mask of the
// filters that it skips. kVirtual: the number of mappings, and of each the file and the dataset that has the
// items, and, for each dimension, where its box begins, and the sizes of the box.
enum class Storage : std::uint8_t { kContiguous = 0, kCompact, kChunked, kVirtual };
inline constexpr std::uint64_t kUnwritten = UINT64_MAX;

// Files with longer paths, or deeper groups, are neither read nor made.
inline constexpr std::size_t kMostName = std::size_t{64} << 10;  // bytes of a path
inline constexpr int kMostDepth = 512;                           // groups in each other

// Offsets count from the superblock, whose place the program gets as an argument.

// The other way round, `mckpt-hdf5 compose`: standard input is a request for a file, and the answer is the
// file without its data, and where the data belong. No file is written by the program.
//
//   kRequestMagic 512  kGroup "files"  kContiguous "w" <type> <dimensions>  kText "dtype" "bfloat16" ...  kEnd
//   kLayoutMagic  kOffset 4096 ...  kPiece 512 <bytes> ...  kBytes 9216  kEnd       or kFault <words> for all of it
//
// After the magic, the request has the size of the user block. Attributes belong to the object before them,
// or, at the beginning, to the root. Groups come before what is in them.
inline constexpr std::string_view kRequestMagic = "mckpt-hdf5 request 1\n";
inline constexpr std::string_view kLayoutMagic = "mckpt-hdf5 layout 1\n";

enum class Wanted : std::uint8_t {
  kGroup = 'G',       // path
  kContiguous = 'D',  // path, type, dimensions: its data are allocated and left unwritten
  kVirtual = 'V',     // path, type, dimensions, the number of mappings, and each of them
  kText = 'T',        // an attribute: name, value
  kNumbers = 'N',     // an attribute: name, how many, and each
  kEnd = 'Z',
};

enum class Laid : std::uint8_t {
  kOffset = 'O',  // of the data of one kContiguous, in their order; kUnwritten if it has none
  kPiece = 'P',   // bytes of the file that are not data: offset, and the bytes as text
  kBytes = 'S',   // the size of the file
  kFault = 'F',   // words: nothing else follows but kEnd
  kEnd = 'Z',     // the number of records before it
};

// A mapping is what Storage::kVirtual has of one: "." is the same file, and the box has all of that dataset.

// How the program ends when it does not answer.
inline constexpr int kExitNoSandbox = 71, kExitUsage = 64;

}  // namespace mckpt::impl::hdf5_wire
