#include "io/copy/tensor_copy.h"
#include "io/output/output_files.h"

#include <gtest/gtest.h>

#include <random>

#include "io/copy/engine.h"
#include "io/file/crc32.h"
#include "io/file/file.h"
#include "io/store/shared_tensors.h"
#include "tests/support/table_store.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace {

using Tensor = TableStore::Tensor;

constexpr i64 kFileBytes = 9 << 20;

TableStore::Piece piece(DType dtype, std::vector<i64> offsets, std::vector<i64> sizes, ChunkData data) {
  data.file = 0;
  data.dtype = dtype;
  return {std::move(offsets), std::move(sizes), std::move(data)};
}

Tensor one(std::string name, DType dtype, std::vector<i64> dims, ChunkData data) {
  std::vector<i64> zeros(dims.size());
  return {std::move(name), dtype, dims, {piece(dtype, zeros, dims, std::move(data))}};
}

// Tensors with every order of their bytes in a file.
TableStore every_way(const TempFolder& folder) {
  std::mt19937 random(7);
  std::string bytes(kFileBytes, '\0');
  for (char& b : bytes) b = static_cast<char>(random());
  folder.put("a", bytes);
  TableStore store(folder.path());
  store.add_file("a", kFileBytes);
  store.tensors = {
      one("plain", DType::kBF16, {3, 700'000}, {.offset = 6}),
      one("scalar", DType::kI64, {}, {.offset = 17}),
      one("none", DType::kF32, {0, 3}, {.offset = 5}),
      one("three bytes for four items", DType::kF6E2M3, {8}, {.offset = 1}),
      one("transposed", DType::kF32, {900, 1100}, {.offset = 8, .strides = {1, 900}}),
      one("every third", DType::kC128, {70'000}, {.offset = 3, .strides = {3}}),
      one("swapped", DType::kF64, {1000, 200}, {.offset = 24, .big_endian = true}),
      Tensor{"pieces",
             DType::kF32,
             {1000, 1000},
             {piece(DType::kF32, {0, 0}, {1000, 400}, {.offset = 4'000'000}),
              piece(DType::kF32, {0, 400}, {1000, 600}, {.offset = 200, .strides = {600, 1}})}},
  };
  return store;
}

std::vector<u8> bytes_of(const TableStore& store, i64 tensor) {
  StoreFiles files(store);
  TensorReader reader(store, files);
  std::vector<u8> out;
  reader.read(tensor,
              [&](std::span<const u8> part, i64) { out.insert(out.end(), part.begin(), part.end()); });
  return out;
}

// Copies all tensors, the last first, with gaps between them, and compares each with what a reader reads.
void expect_copied(const TableStore& store, std::string_view behind, int threads) {
  std::vector<TensorCopy::Place> places;
  i64 end = 11;
  for (i64 t = store.tensor_count(); t-- > 0;) {
    places.push_back({t, 0, end});
    end += TensorReader::tensor_bytes(store, t) + static_cast<i64>(behind.size()) + t;
  }
  TempFolder result;
  TensorCopy copy(store, places, behind);
  OutputFiles written(result.path(), {{"out", end}});
  CopyCounts counts = run_copy(copy, written, {.threads = threads, .batch_bytes = 300'000});
  EXPECT_NEAR(static_cast<double>(counts.bytes_read), static_cast<double>(end), 1000);
  InputFile out(result.at("out"));
  for (std::size_t p = 0; p < places.size(); p++) {
    std::vector<u8> expected = bytes_of(store, places[p].tensor);
    EXPECT_EQ(copy.crc32s()[p], behind.empty() ? 0 : crc32(0, expected)) << store.name(places[p].tensor);
    if (!expected.empty()) expected.insert(expected.end(), behind.begin(), behind.end());
    EXPECT_TRUE(out.read(places[p].offset, static_cast<i64>(expected.size())) == expected)
        << store.name(places[p].tensor);
  }
}

TEST(TensorCopy, CopiesWhatAReaderReadsHoweverItLies) {
  TempFolder folder;
  TableStore store = every_way(folder);
  for (std::string_view behind : {"", "mark"})
    for (int threads : {1, 3}) expect_copied(store, behind, threads);
}

TEST(TensorCopy, LooksAtEveryTensorBeforehand) {
  TempFolder folder;
  TableStore store = every_way(folder);
  store.tensors[4].pieces[0].data.offset = kFileBytes;
  EXPECT_NE(thrown_by([&] {
              TensorCopy(store, {{4, 0, 0}});
            }).find("tensor 'transposed'"),
            std::string::npos);
  store.tensors[7].pieces.pop_back();
  EXPECT_NE(thrown_by([&] { TensorCopy(store, {{7, 0, 0}}); }).find("tensor 'pieces'"), std::string::npos);
}

TEST(SharedTensors, AreThoseThatLieInTheSameBytes) {
  TableStore store("root");
  store.add_file("a", 1000);
  store.add_file("b", 1000);
  auto add = [&](i32 file, i64 offset, std::vector<i64> dims, std::vector<i64> strides = {}) {
    std::vector<i64> zeros(dims.size());
    ChunkData data{.file = file, .offset = offset, .dtype = DType::kF32, .strides = std::move(strides)};
    store.tensors.push_back({"t", DType::kF32, dims, {{zeros, dims, data}}});
  };
  add(0, 100, {5});             // [100, 120)
  add(0, 120, {5});             // [120, 140): next to it
  add(1, 100, {5});             // another file
  add(0, 116, {1});             // in 0
  add(0, 132, {2, 2}, {1, 4});  // [132, 156): over the end of 1
  add(0, 152, {0});             // no bytes
  add(0, 100, {5});             // computed, so not in the file
  store.tensors.back().pieces[0].data.unpacked = std::make_shared<MemorySource>(std::span<const u8>());
  const std::vector<i64> all = {0, 1, 2, 3, 4, 5, 6}, some = {3, 1, 2};
  EXPECT_EQ(shared_tensors(store, all), (std::vector<i64>{3, 4}));
  EXPECT_EQ(shared_tensors(store, some), std::vector<i64>{});
}

}  // namespace
}  // namespace mckpt::impl
