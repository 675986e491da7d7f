// Folders laid out by DcpLayout, written, and read back by the reader that reads everybody's.
#include "io/dcp/write/layout.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

#include "core/base/text.h"
#include "io/dcp/write/record.h"
#include "io/file/crc32.h"
#include "io/file/file.h"
#include "io/output/output_files.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
#include "io/verify/checksums.h"
#include "io/zip/zip.h"
#include "io/zip/zip_writer.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace {

// Keys of random shapes, each cut into rows over some of the ranks.
DcpLayout random_layout(unsigned seed, i64 ranks) {
  std::mt19937 random(seed);
  auto upto = [&](i64 n) { return std::uniform_int_distribution<i64>(0, n)(random); };
  const DType types[] = {DType::kBF16, DType::kF32, DType::kF16, DType::kI64, DType::kU8, DType::kF64};
  DcpLayout layout(ranks);
  struct Cut {
    i32 key;
    std::vector<i64> offsets, sizes;
  };
  std::vector<std::vector<Cut>> held(static_cast<std::size_t>(ranks));
  for (i32 k = 0; k < 20; k++) {
    std::vector<i64> dims(static_cast<std::size_t>(upto(4)));
    for (i64& d : dims) d = 1 + upto(6);
    layout.add_key({{cat("model.module.layers.", k, ".w"), {5}}, types[upto(5)], Shape(dims)});
    i64 rows = dims.empty() ? 1 : dims[0];
    for (i64 row = 0; row < rows;) {
      i64 end = dims.empty() ? rows : row + 1 + upto(rows - row - 1);
      Cut c{k, std::vector<i64>(dims.size()), dims};
      if (!dims.empty()) c.offsets[0] = row, c.sizes[0] = end - row;
      held[static_cast<std::size_t>(upto(ranks - 2))].push_back(c);  // the last rank has none
      row = end;
    }
  }
  for (std::size_t rank = 0; rank < held.size(); rank++)
    for (const Cut& c : held[rank]) layout.add_chunk(c.key, static_cast<i32>(rank), c.offsets, c.sizes);
  layout.add_object({"iteration", {}}, 0, "\x80\x04K\x07.");
  return layout;
}

std::string metadata_text(const DcpLayout& layout) {
  std::string text;
  layout.write_metadata([&](std::string_view piece) { text += piece; });
  return text;
}

// The data of chunk c: its number, over and over.
void write_folder(const DcpLayout& layout, const std::string& folder) {
  OutputFiles out(folder, layout.files());
  for (i64 c = 0; c < layout.chunk_count(); c++) {
    DcpLayout::Chunk chunk = layout.chunk(c);
    std::vector<u8> data(static_cast<std::size_t>(chunk.frame->data_bytes()), static_cast<u8>(c));
    std::vector<u8> tail(static_cast<std::size_t>(chunk.frame->tail_bytes()));
    chunk.frame->write_tail(crc32(0, data), tail);
    out.write(chunk.rank, chunk.record_offset, chunk.frame->head());
    out.write(chunk.rank, chunk.data_offset(), data);
    out.write(chunk.rank, chunk.data_offset() + std::ssize(data), tail);
  }
  layout.write_objects(out);
  std::ofstream(folder + "/.metadata", std::ios::binary) << metadata_text(layout);
}

TEST(DcpLayout, IsReadBackAsItWasLaidOut) {
  for (unsigned seed = 0; seed < 30; seed++) {
    TempFolder folder;
    DcpLayout layout = random_layout(seed, 4);
    write_folder(layout, folder.path());
    std::unique_ptr<Store> store = open_store(folder.path());
    EXPECT_TRUE(store->findings().empty()) << store->findings()[0].message;
    ASSERT_EQ(store->tensor_count(), layout.key_count());
    ASSERT_EQ(store->objects().size(), 1u);

    std::map<std::string, i64> tensors;
    for (i64 t = 0; t < store->tensor_count(); t++) tensors[std::string(store->name(t))] = t;
    std::map<i64, i64> next;  // by tensor: its next chunk
    for (i64 c = 0; c < layout.chunk_count(); c++) {
      DcpLayout::Chunk chunk = layout.chunk(c);
      const DcpLayoutKey& key = layout.key(chunk.key);
      i64 t = tensors.at(key.name.text), i = next[t]++;
      EXPECT_EQ(store->dtype(t), key.dtype);
      EXPECT_TRUE(std::ranges::equal(store->dims(t), key.shape.dims()));
      Chunk there = store->chunk(t, i);
      EXPECT_TRUE(std::ranges::equal(there.offsets, chunk.offsets));
      EXPECT_TRUE(std::ranges::equal(there.sizes, chunk.sizes));
      EXPECT_EQ(there.rank, chunk.rank);
      ChunkData data = store->resolve(t, i);
      EXPECT_EQ(data.offset, chunk.data_offset());
      EXPECT_EQ(data.offset % 64, 0);
      EXPECT_EQ(data.dtype, key.dtype);
    }
    for (auto [t, count] : next) EXPECT_EQ(store->chunk_count(t), count);
    ChecksumResult sums = check_checksums(*store, StoreFiles(*store), 1, [](i64) {});
    EXPECT_TRUE(sums.findings.empty()) << sums.findings[0].message;
    EXPECT_GE(sums.records, layout.chunk_count());
  }
}

// The order of a state dict: the tensors of a rank, then its objects; and a value that is written like a
// tensor.
TEST(DcpLayout, PutsTheObjectsOfAStateDictLast) {
  DcpLayout layout(2);
  layout.put_objects_last();
  layout.add_object({"optimizer.param_groups.0.lr", {9, 22, 24}, {2}}, 1, "\x80\x04K\x07.");
  layout.add_value({"optimizer.state.a.step", {9, 15, 17}}, 0, DType::kF32,
                   std::array<u8, 4>{0, 0, 0x88, 0x41});
  i32 a = layout.add_key({{"model.a", {5}}, DType::kF32, Shape({3, 2}), true});
  i32 b = layout.add_key({{"model.b", {5}}, DType::kF32, Shape({2}), true});
  layout.add_chunk(a, 0, std::vector<i64>{0, 0}, std::vector<i64>{1, 2});
  layout.add_chunk(a, 1, std::vector<i64>{1, 0}, std::vector<i64>{2, 2});
  layout.add_chunk(b, 1, std::vector<i64>{0}, std::vector<i64>{2});
  TempFolder folder;
  write_folder(layout, folder.path());
  std::unique_ptr<Store> store = open_store(folder.path());
  EXPECT_TRUE(store->findings().empty());
  std::vector<std::string> names;
  for (i64 t = 0; t < store->tensor_count(); t++) names.emplace_back(store->name(t));
  EXPECT_EQ(names, (std::vector<std::string>{"model.a", "optimizer.state.a.step", "model.b"}));
  EXPECT_TRUE(store->dims(1).empty());
  ChunkData step = store->resolve(1, 0);
  std::vector<u8> bytes(4);
  StoreFiles files(*store);
  files.open(step.file)->read(step.offset, bytes);
  EXPECT_EQ(bytes, (std::vector<u8>{0, 0, 0x88, 0x41}));  // 17
  EXPECT_EQ(store->chunk(1, 0).rank, 0);
  ASSERT_EQ(store->objects().size(), 1u);
  EXPECT_EQ(store->objects()[0].record_offset, 0);  // before the tensors of its file
  std::string metadata = metadata_text(layout);
  EXPECT_LT(metadata.find("model.b"), metadata.find("optimizer.param_groups"));
  EXPECT_TRUE(check_checksums(*store, files, 1, [](i64) {}).findings.empty());
}

TEST(DcpLayout, GivesTheSameBytesForTheSameInput) {
  EXPECT_EQ(metadata_text(random_layout(1, 3)), metadata_text(random_layout(1, 3)));
  EXPECT_NE(metadata_text(random_layout(1, 3)), metadata_text(random_layout(2, 3)));
}

TEST(DcpTensorFrame, IsAnArchiveAroundItsData) {
  for (std::vector<i64> dims : {std::vector<i64>{}, {0}, {1}, {3, 5}, {2, 3, 4, 5}, {1000, 33}})
    for (DType type : {DType::kBF16, DType::kF32, DType::kBool, DType::kF8E4M3}) {
      DcpTensorFrame frame(type, dims);
      EXPECT_EQ(frame.record_bytes() % 64, 0);
      EXPECT_EQ(std::ssize(frame.head()) % 64, 0);
      std::vector<u8> archive(frame.head().begin(), frame.head().end());
      std::vector<u8> data(static_cast<std::size_t>(frame.data_bytes()), 0xa5);
      archive.insert(archive.end(), data.begin(), data.end());
      archive.resize(static_cast<std::size_t>(frame.record_bytes()));
      frame.write_tail(crc32(0, data), std::span(archive).last(static_cast<std::size_t>(frame.tail_bytes())));
      MemorySource source{archive};
      ZipArchive zip(source);
      ASSERT_EQ(zip.entries().size(), 4u);
      const ZipEntry* entry = zip.find("archive/data/0");
      ASSERT_NE(entry, nullptr);
      EXPECT_EQ(entry->data_offset, std::ssize(frame.head()));
      EXPECT_EQ(zip.read(*entry, 1 << 20), data);
      for (const ZipEntry& e : zip.entries()) zip.read(e, 1 << 20);  // checks the sums
    }
}

TEST(DcpTensorFrame, RefusesWhatTorchHasNoTypeFor) {
  EXPECT_EQ(thrown_by([] { DcpTensorFrame(DType::kF4, std::vector<i64>{3}); }).substr(0, 6), "MC3005");
}

TEST(ZipRecords, OfMoreThanFourGigabytesHaveWideSizes) {
  ZipRecord r{"archive/data/0", i64{5} << 30, i64{6} << 30, 0, 0x12345678, true};
  r.data_offset = zip_data_offset(r);
  EXPECT_EQ(r.data_offset % kZipAlignment, 0);
  std::vector<u8> header, descriptor, entry;
  append_zip_header(header, r);
  EXPECT_EQ(std::ssize(header), r.data_offset - r.header_offset);
  append_zip_descriptor(descriptor, r);
  EXPECT_EQ(std::ssize(descriptor), zip_descriptor_bytes(r));
  EXPECT_EQ(std::ssize(descriptor), 24);
  append_zip_entry(entry, r);
  std::span<const u8> wide = std::span(entry).last(24);  // the sizes and the offset do not fit 32 bits
  auto number = [&](std::size_t at) {
    u64 v = 0;
    for (std::size_t i = 8; i-- > 0;) v = v << 8 | wide[at + i];
    return static_cast<i64>(v);
  };
  EXPECT_EQ(number(0), r.bytes);
  EXPECT_EQ(number(8), r.bytes);
  EXPECT_EQ(number(16), r.header_offset);
}

}  // namespace
}  // namespace mckpt::impl
