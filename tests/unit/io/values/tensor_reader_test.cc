#include "io/values/tensor_reader.h"
#include "core/items/shape.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "core/base/text.h"
#include "io/store/store_files.h"
#include "tests/support/table_store.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace {

using Piece = TableStore::Piece;

// Items are numbered by their place in the tensor, so the right answer is 0, 1, 2, ...
struct Sample {
  explicit Sample(u64 seed) : store(folder.path()), random(seed) {}

  i64 below(i64 n) { return std::uniform_int_distribution<i64>(0, n - 1)(random); }

  // Cuts the box in two until it is small or luck says so; every part becomes a chunk.
  void split(std::vector<i64> offsets, std::vector<i64> sizes, int depth) {
    std::size_t d = sizes.empty() ? 0 : static_cast<std::size_t>(below(static_cast<i64>(sizes.size())));
    if (depth == 0 || sizes.empty()) return add_chunk(std::move(offsets), std::move(sizes));
    i64 cut = below(sizes[d] + 1);
    std::vector<i64> low = sizes, high = sizes, high_offsets = offsets;
    low[d] = cut;
    high[d] -= cut;
    high_offsets[d] += cut;
    split(std::move(offsets), std::move(low), depth - 1);
    split(std::move(high_offsets), std::move(high), depth - 1);
  }

  // Writes the chunk's items to a file of their own: row-major, or with the dimensions in another order and
  // gaps between.
  void add_chunk(std::vector<i64> offsets, std::vector<i64> sizes) {
    Piece piece{offsets, sizes, {}};
    piece.data.dtype = dtype;
    piece.data.offset = below(20);
    piece.data.big_endian = below(4) == 0;
    std::size_t width = static_cast<std::size_t>(dtype_info(dtype).bits / 8);
    std::vector<i64> strides(sizes.size());
    i64 extent = 1;
    std::vector<std::size_t> order(sizes.size());
    std::iota(order.rbegin(), order.rend(), 0);
    bool strided = below(2) == 0;
    if (strided) std::shuffle(order.begin(), order.end(), random);
    for (std::size_t d : order) {
      strides[d] = extent * (strided ? 1 + below(3) : 1);
      extent = strides[d] * std::max<i64>(1, sizes[d]);
    }
    if (strided || below(2) == 0) piece.data.strides = strides;
    std::string bytes(static_cast<std::size_t>(piece.data.offset) + static_cast<std::size_t>(extent) * width,
                      '\xee');
    i64 items = Shape(sizes).items();
    for (i64 i = 0; i < items; i++) {
      i64 rest = i, global = 0, local = 0, scale = 1;
      for (std::size_t d = sizes.size(); d-- > 0;) {
        i64 at = rest % sizes[d];
        rest /= sizes[d];
        local += at * strides[d];
        global += (offsets[d] + at) * scale;
        scale *= dims[d];
      }
      for (std::size_t b = 0; b < width; b++) {
        // Swapped by itself
        std::size_t part = dtype_info(dtype).kind == DTypeKind::kComplex ? width / 2 : width;
        std::size_t place = piece.data.big_endian ? b / part * part + part - 1 - b % part : b;
        u64 shifted = b < 8 ? static_cast<u64>(global) >> (8 * b) : 0;
        bytes[static_cast<std::size_t>(piece.data.offset) + static_cast<std::size_t>(local) * width + place] =
            static_cast<char>(shifted);
      }
    }
    std::string name = cat("chunk", static_cast<i64>(store.files().size()));
    folder.put(name, bytes);
    piece.data.file = store.add_file(name, static_cast<i64>(bytes.size()));
    pieces.push_back(std::move(piece));
  }

  void finish() { store.tensors.push_back({"t", dtype, dims, std::move(pieces)}); }

  void expect_numbers(i64 begin, i64 end) {
    StoreFiles files(store);
    TensorReader reader(store, files);
    i64 width = dtype_info(dtype).bits / 8, next = begin;
    reader.read(0, begin, end, [&](std::span<const u8> bytes, i64 at) {
      ASSERT_EQ(at, next * width);
      ASSERT_LE(static_cast<i64>(bytes.size()), TensorReader::kWindowBytes);
      for (std::size_t i = 0; i < bytes.size(); i += static_cast<std::size_t>(width), next++) {
        u64 value = 0;
        for (i64 b = std::min<i64>(width, 8); b-- > 0;)
          value = value << 8 | bytes[i + static_cast<std::size_t>(b)];
        u64 mask = width >= 8 ? ~u64{0} : (u64{1} << (8 * width)) - 1;
        ASSERT_EQ(value, static_cast<u64>(next) & mask) << "item " << next;
      }
    });
    EXPECT_EQ(next, end);
  }

  TempFolder folder;
  TableStore store;
  std::mt19937_64 random;
  DType dtype = DType::kI32;
  std::vector<i64> dims;
  std::vector<Piece> pieces;
};

TEST(TensorReader, AgreesWithANaiveReaderOnRandomCuts) {
  const DType types[] = {DType::kU8, DType::kBF16, DType::kF32, DType::kI64, DType::kC128};
  for (u64 seed = 0; seed < 300; seed++) {
    Sample s(seed);
    s.dtype = types[seed % 5];
    for (i64 rank = s.below(5); rank > 0; rank--) s.dims.push_back(s.below(7) + (seed % 10 != 0));
    s.split(std::vector<i64>(s.dims.size(), 0), s.dims, static_cast<int>(s.below(5)));
    s.finish();
    i64 items = Shape(s.dims).items(), begin = s.below(items + 1);
    SCOPED_TRACE(cat("seed ", static_cast<i64>(seed)));
    s.expect_numbers(0, items);
    s.expect_numbers(begin, begin + s.below(items - begin + 1));
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(TensorReader, CrossesWindows) {
  for (u64 seed = 0; seed < 6; seed++) {
    Sample s(seed);
    s.dims = {700, 1001};
    s.split({0, 0}, s.dims, static_cast<int>(seed % 4));
    s.finish();
    SCOPED_TRACE(cat("seed ", static_cast<i64>(seed)));
    s.expect_numbers(0, 700 * 1001);
    s.expect_numbers(262143, 600001);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(TensorReader, NamesTheHole) {
  Sample s(1);
  s.dims = {8, 4};
  s.add_chunk({0, 0}, {4, 4});
  s.add_chunk({6, 0}, {2, 4});
  s.finish();
  EXPECT_NE(thrown_by([&] {
              s.expect_numbers(0, 32);
            }).find("tensor 't': a hole: no chunk covers offsets [4, 0], sizes [2, 4]"),
            std::string::npos);
}

TEST(TensorReader, TakesTheFirstOfOverlappingChunksAndSkipsReplicas) {
  Sample s(1);
  s.dims = {4};
  s.add_chunk({0}, {3});
  s.add_chunk({1}, {3});
  s.add_chunk({0}, {3});
  s.pieces[2].replica = true;
  s.pieces[2].data.file = 99;  // would fail when it is opened
  s.finish();
  s.expect_numbers(0, 4);
}

TEST(TensorReader, RefusesItemsBeyondTheFile) {
  Sample s(1);
  s.dims = {4};
  s.add_chunk({0}, {4});
  s.pieces[0].data.offset += 100;
  s.finish();
  EXPECT_NE(thrown_by([&] { s.expect_numbers(0, 4); }).find("MC1103"), std::string::npos);
}

TEST(TensorReader, ReadsElementsSmallerThanAByteWhole) {
  TempFolder folder;
  TableStore store(folder.path());
  folder.put("f", "head123456");
  i32 file = store.add_file("f", 10);
  store.tensors.push_back(
      {"t", DType::kF6E2M3, {8}, {Piece{{0}, {8}, {.file = file, .offset = 4, .dtype = DType::kF6E2M3}}}});
  StoreFiles files(store);
  TensorReader reader(store, files);
  std::string text;
  reader.read(0, [&](std::span<const u8> bytes, i64) { text.append(bytes.begin(), bytes.end()); });
  EXPECT_EQ(text, "123456");
}

TEST(StoreFiles, RefuseAFileThatChangedItsSize) {
  TempFolder folder;
  TableStore store(folder.path());
  folder.put("f", "123");
  i32 file = store.add_file("f", 4);
  StoreFiles files(store);
  EXPECT_NE(thrown_by([&] { files.open(file); }).find("changed since"), std::string::npos);
}

TEST(StoreFiles, KeepFewOpenAndReopenTheRest) {
  TempFolder folder;
  TableStore store(folder.path());
  for (int i = 0; i < 300; i++)
    store.add_file(std::filesystem::path(folder.put(cat("f", i), cat(i))).filename(),
                   static_cast<i64>(cat(i).size()));
  StoreFiles files(store);
  for (int round = 0; round < 2; round++)
    for (i32 i = 0; i < 300; i++) {
      std::vector<u8> bytes = files.open(i)->read(0, files.open(i)->size());
      EXPECT_EQ(std::string(bytes.begin(), bytes.end()), cat(i));
    }
  i64 open = std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  EXPECT_LT(open, 200);
}

}  // namespace
}  // namespace mckpt::impl
