#include "io/hdf5/chunks.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <random>

#include "core/items/shape.h"
#include "io/file/bytes.h"
#include "io/hdf5/filters.h"
#include "io/hdf5/layout.h"
#include "io/store/store.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace {

constexpr i64 kBase = 64;

// The filters of HDF5 when it writes, the plain way.
std::vector<u8> filtered(std::vector<u8> data, std::span<const Hdf5Filter> filters) {
  for (const Hdf5Filter& f : filters) {
    if (f.id == 2) {
      std::size_t width = static_cast<std::size_t>(f.parameter), n = data.size() / width;
      std::vector<u8> out = data;
      for (std::size_t i = 0; i < n; i++)
        for (std::size_t b = 0; b < width; b++) out[b * n + i] = data[i * width + b];
      data = out;
    } else if (f.id == 1) {
      uLongf bytes = compressBound(data.size());
      std::vector<u8> out(bytes);
      EXPECT_EQ(compress2(out.data(), &bytes, data.data(), data.size(), 6), Z_OK);
      out.resize(bytes);
      data = out;
    } else {
      append_le<u32>(data, fletcher32(data));
    }
  }
  return data;
}

// A random dataset of 2-byte items, the file that holds it, and its bytes item by item.
struct Sample {
  Hdf5Dataset d;
  std::vector<u8> file = std::vector<u8>(kBase), wanted;

  explicit Sample(std::mt19937& random) {
    auto below = [&](u32 n) { return static_cast<i64>(random() % n); };
    d.type = {hdf5_wire::TypeClass::kInteger, 2, false, {16, 0, 1}};
    d.storage = hdf5_wire::Storage::kChunked;
    for (i64 rank = 1 + below(4); rank > 0; rank--) {
      d.dims.push_back(1 + below(9));
      d.chunk_dims.push_back(below(3) ? 1 + below(5) : d.dims.back());
    }
    if (below(2)) d.fill = {7, 9};
    static const std::vector<Hdf5Filter> kChoices[] = {
        {}, {{1, 6}}, {{2, 2}, {1, 6}}, {{2, 2}, {1, 6}, {3, 0}}, {{3, 0}}, {{3, 0}, {1, 6}}, {{2, 3}}};
    d.filters = kChoices[below(7)];
    wanted.resize(static_cast<std::size_t>(2 * Shape(d.dims).items()));
    for (i64 place = 0; place < chunk_places(d); place++) add_chunk(place, below(4) != 0, random);
  }

  void add_chunk(i64 place, bool written, std::mt19937& random) {
    std::vector<i64> grid, corner;
    for (std::size_t i = 0; i < d.dims.size(); i++) grid.push_back(ceil_div(d.dims[i], d.chunk_dims[i]));
    corner = item_index(place, grid);
    std::vector<u8> data(static_cast<std::size_t>(chunk_bytes(d)));
    for (u8& b : data) b = static_cast<u8>(random() % 5);
    for (i64 item = 0; item < Shape(d.chunk_dims).items(); item++) {
      std::vector<i64> in = item_index(item, d.chunk_dims);
      i64 to = 0;
      bool inside = true;
      for (std::size_t i = 0; i < in.size(); i++) {
        i64 index = corner[i] * d.chunk_dims[i] + in[i];
        inside &= index < d.dims[i];
        to = to * d.dims[i] + index;
      }
      for (std::size_t b = 0; inside && b < 2; b++)
        wanted[static_cast<std::size_t>(2 * to) + b] = written ? data[static_cast<std::size_t>(2 * item) + b]
                                                       : d.fill.empty() ? u8{0}
                                                                        : d.fill[b];
    }
    if (!written) return;
    std::vector<u8> stored = filtered(data, d.filters);
    d.chunks.push_back({place, static_cast<i64>(file.size()) - kBase, static_cast<i64>(stored.size()), 0});
    file.insert(file.end(), stored.begin(), stored.end());
  }
};

TEST(Hdf5Chunks, ReadAsTheRowMajorBytesTheyStandFor) {
  std::mt19937 random(3);
  for (int round = 0; round < 500; round++) {
    Sample s(random);
    MemorySource file(s.file);
    check_dataset(s.d, file.size() - kBase);
    Hdf5Chunks source(file, kBase, s.d);
    ASSERT_EQ(source.read(0, source.size()), s.wanted) << round;
    for (int part = 0; part < 5; part++) {
      i64 begin = static_cast<i64>(random() % s.wanted.size());
      i64 bytes = 1 + static_cast<i64>(random() % (s.wanted.size() - static_cast<std::size_t>(begin)));
      ASSERT_EQ(source.read(begin, bytes),
                std::vector<u8>(s.wanted.begin() + begin, s.wanted.begin() + begin + bytes));
    }
  }
}

TEST(Hdf5Chunks, ThatWereChangedAreFound) {
  Hdf5Dataset d;
  d.type = {hdf5_wire::TypeClass::kInteger, 1, false, {8, 0, 0}};
  d.storage = hdf5_wire::Storage::kChunked;
  d.dims = d.chunk_dims = {100};
  const std::vector<u8> data(100, 5);
  i64 errors = 0;
  for (std::vector<Hdf5Filter> filters : {std::vector<Hdf5Filter>{{1, 6}}, {{3, 0}}}) {
    d.filters = filters;
    std::vector<u8> good = filtered(data, d.filters);
    d.chunks = {{0, 0, static_cast<i64>(good.size()), 0}};
    for (std::size_t at = 0; at < good.size(); at++) {
      std::vector<u8> bad = good;
      bad[at] ^= 0x10;
      MemorySource file(bad);
      std::vector<u8> found;
      std::string said = thrown_by([&] { found = Hdf5Chunks(file, 0, d).read(0, 100); });
      // A deflate stream can say the same in two ways.
      EXPECT_TRUE(said.starts_with("MC1401") || found == data) << at << ": " << said;
      errors += said != "nothing";
    }
  }
  EXPECT_GT(errors, 100);
}

TEST(Hdf5Chunks, ThatWouldFillMemoryAreRefused) {
  Hdf5Dataset d;
  d.type = {hdf5_wire::TypeClass::kInteger, 1, false, {8, 0, 0}};
  d.storage = hdf5_wire::Storage::kChunked;
  d.dims = {i64{1} << 20, i64{1} << 20};
  d.chunk_dims = {i64{1} << 10, 1};
  d.filters = {{1, 6}};
  MemorySource nothing({});
  EXPECT_NE(thrown_by([&] { Hdf5Chunks(nothing, 0, d); }).find("MC1402"), std::string::npos);
  d.filters.clear();
  EXPECT_EQ(thrown_by([&] { Hdf5Chunks(nothing, 0, d); }), "nothing");
}

TEST(Hdf5Filters, SumAsHdf5Does) {
  // By hand; what the library stores is met in tests/judges.
  EXPECT_EQ(fletcher32({}), 0u);
  std::vector<u8> bytes;
  for (int i = 0; i < 1001; i++) bytes.push_back(static_cast<u8>(i * 7));
  EXPECT_EQ(fletcher32(std::span(bytes).first(2)), 0x00070007u);
  EXPECT_EQ(fletcher32(std::span(bytes).first(3)), 0x0e0e0e07u);
}

}  // namespace
}  // namespace mckpt::impl
