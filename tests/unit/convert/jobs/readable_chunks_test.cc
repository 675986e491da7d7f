// Readers of chunks at strides belong to a run: how many are kept, and how much memory each may take, is said by
// CopyJob::prepare() and not when the job is planned.
#include "convert/jobs/readable_chunks.h"

#include <gtest/gtest.h>

#include <cstring>

#include "convert/jobs/chunk_job.h"
#include "convert/jobs/chunk_jobs.h"
#include "io/copy/engine.h"
#include "io/output/copy_sink.h"
#include "tests/support/table_store.h"
#include "tests/support/temp_folder.h"

namespace mckpt::impl {
namespace readable_chunks_test {

constexpr i64 kRows = 4, kColumns = 6;

// Two tensors "a" and "b" that are stored transposed. Counts how often a chunk is resolved: once for its place, and
// once for each reader of it.
class Transposed final : public TableStore {
 public:
  explicit Transposed(TempFolder& folder) : TableStore(folder.path()) {
    std::string bytes;
    for (i64 t = 0; t < 2; t++) {
      const i64 begin = std::ssize(bytes);
      for (i64 i = 0; i < kRows * kColumns; i++) {
        const float value = static_cast<float>(100 * t + i);
        bytes.append(reinterpret_cast<const char*>(&value), 4);
      }
      tensors.push_back({t == 0 ? "a" : "b", DType::kF32, {kRows, kColumns}, {}});
      tensors.back().pieces.push_back(
          {{0, 0},
           {kRows, kColumns},
           {.file = 0, .offset = begin, .dtype = DType::kF32, .strides = {1, kRows}}});
    }
    folder.put("f", bytes);
    add_file("f", std::ssize(bytes));
  }
  ChunkData resolve(i64 t, i64 i) const override {
    resolved++;
    return TableStore::resolve(t, i);
  }
  mutable i64 resolved = 0;
};

// Reads both chunks twice, row after row in turns. Returns how many readers were made.
i64 readers_of_turns(const ReadableChunks& chunks, const Transposed& store) {
  std::vector<i32> file;
  for (i64 c = 0; c < 2; c++) file.push_back(chunks.place(c).file);
  const i64 before = store.resolved;
  for (i64 turn = 0; turn < kRows; turn++)
    for (i64 c = 0; c < 2; c++) {
      float row[kColumns];
      chunks.source(file[static_cast<std::size_t>(c)])
          .read(turn * kColumns * 4, {reinterpret_cast<u8*>(row), sizeof row});
      for (i64 i = 0; i < kColumns; i++) EXPECT_EQ(row[i], static_cast<float>(100 * c + i * kRows + turn));
    }
  return store.resolved - before;
}

TEST(ReadableChunks, KeepAReaderForEachThreadOfTheRun) {
  TempFolder folder;
  const Transposed store(folder);
  const std::vector<std::pair<i32, i32>> all = {{0, 0}, {1, 1}};
  const ReadableChunks one(store, all), two(store, all);
  EXPECT_EQ(readers_of_turns(one, store), 2 * kRows);  // each turn opens the chunk anew
  two.prepare({.threads = 2});
  EXPECT_EQ(readers_of_turns(two, store), 2);
}

TEST(ReadableChunks, ShareTheMemoryOfTheRun) {
  constexpr i64 kMiB = i64{1} << 20;
  EXPECT_EQ(read_memory(8, 256 * kMiB).bytes, 8 * kMiB);
  EXPECT_EQ(read_memory(8, 64 * kMiB).bytes,
            2 * kMiB);  // all readers together: a quarter of the run's memory
  EXPECT_EQ(read_memory(8, 64 * kMiB).threads, 8);
  EXPECT_EQ(read_memory(8, kMiB).bytes, kMiB);
  EXPECT_EQ(read_memory(1, 1024 * kMiB).bytes, 32 * kMiB);
}

class Nowhere final : public CopySink {
 public:
  void write(i32, i64, std::span<const u8>) override {}
};

TEST(ReadableChunks, AreThoseOfTheRunThatCarriesAJobOut) {
  TempFolder folder;
  const Transposed store(folder);
  TableStore plain(folder.path());
  plain.add_file("result", 2 * kRows * kColumns * 4);
  for (i64 t = 0; t < 2; t++) {
    plain.tensors.push_back({t == 0 ? "a" : "b", DType::kF32, {kRows, kColumns}, {}});
    plain.tensors.back().pieces.push_back(
        {{0, 0}, {kRows, kColumns}, {.file = 0, .offset = t * kRows * kColumns * 4, .dtype = DType::kF32}});
  }
  const NamedChunks whole(plain, store);
  const ChunkJob job = tensor_job(store, whole);
  Nowhere nowhere;
  run_copy(job, nowhere, {.threads = 2});
  const i64 before = store.resolved;
  run_copy(job, nowhere, {.threads = 2});
  EXPECT_EQ(store.resolved - before, 2);  // the places of both sources; their readers are there still
}

}  // namespace readable_chunks_test
}  // namespace mckpt::impl
