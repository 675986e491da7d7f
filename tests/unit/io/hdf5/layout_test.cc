#include "io/hdf5/layout.h"
#include "core/items/dtype.h"

#include <gtest/gtest.h>

#include <functional>

#include "io/hdf5/answer.h"
#include "io/hdf5/wire.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace {

using hdf5_wire::Storage;

constexpr i64 kFileBytes = 10000;

Hdf5Type float32() { return {hdf5_wire::TypeClass::kFloat, 4, false, {32, 0, 0, 31, 23, 8, 0, 23, 127}}; }

// float32 [6, 10] at byte 100, or in chunks of [4, 8] from byte 1000 on.
Hdf5Dataset whole() {
  Hdf5Dataset d;
  d.name += 'w';  // an assignment alarms g++ 12
  d.type = float32();
  d.dims = {6, 10};
  d.offset = 100;
  d.bytes = 240;
  return d;
}
Hdf5Dataset chunked() {
  Hdf5Dataset d = whole();
  d.storage = Storage::kChunked;
  d.chunk_dims = {4, 8};
  for (i64 i = 0; i < 4; i++) d.chunks.push_back({i, 1000 + 128 * i, 128, 0});
  return d;
}

std::string judged(Hdf5Dataset d, const std::function<void(Hdf5Dataset&)>& change) {
  change(d);
  return thrown_by([&] { check_dataset(d, kFileBytes); });
}

TEST(Hdf5Layout, OfSoundDatasetsIsTaken) {
  EXPECT_EQ(judged(whole(), [](Hdf5Dataset&) {}), "nothing");
  EXPECT_EQ(judged(whole(), [](Hdf5Dataset& d) { d.offset = kFileBytes - 240; }), "nothing");
  EXPECT_EQ(judged(whole(), [](Hdf5Dataset& d) { d.offset = -1, d.bytes = 0; }), "nothing");
  EXPECT_EQ(judged(chunked(), [](Hdf5Dataset&) {}), "nothing");
  EXPECT_EQ(judged(chunked(), [](Hdf5Dataset& d) { d.chunks.erase(d.chunks.begin() + 1); }), "nothing");
  EXPECT_EQ(judged(chunked(),
                   [](Hdf5Dataset& d) {
                     d.filters = {{2, 4}, {1, 6}};
                     d.chunks[2].bytes = 17;
                   }),
            "nothing");
}

TEST(Hdf5Layout, ThatDoesNotFitIsRefused) {
  struct Case {
    Hdf5Dataset from;
    std::function<void(Hdf5Dataset&)> change;
    const char* says;
  };
  constexpr i64 kMost = INT64_MAX;
  const Case cases[] = {
      {whole(), [](Hdf5Dataset& d) { d.bytes = 239; }, "MC1401"},
      {whole(), [](Hdf5Dataset& d) { d.offset = kFileBytes - 239; }, "beyond the end of the file"},
      {whole(), [](Hdf5Dataset& d) { d.offset = kMost; }, "beyond the end of the file"},
      {whole(),
       [](Hdf5Dataset& d) {
         d.dims = {kMost, kMost};
       },
       "MC0101"},
      {whole(),
       [](Hdf5Dataset& d) {
         d.fill = {1, 2, 3};
       },
       "the fill value is not one element"},
      {whole(), [](Hdf5Dataset& d) { d.offset = -1, d.dims = {i64{1} << 38}; },
       "beyond the limit for the few bytes that the file stores"},
      {whole(), [](Hdf5Dataset& d) { d.storage = Storage::kCompact; }, "the data in the header"},
      {chunked(), [](Hdf5Dataset& d) { d.chunk_dims[1] = 0; }, "a chunk has no items"},
      {chunked(),
       [](Hdf5Dataset& d) {
         d.chunk_dims = {kMost, kMost};
       },
       "MC0101"},
      {chunked(), [](Hdf5Dataset& d) { d.chunks[1].place = 0; }, "a chunk is outside of the dataset"},
      {chunked(), [](Hdf5Dataset& d) { d.chunks[3].place = 4; }, "a chunk is outside of the dataset"},
      {chunked(), [](Hdf5Dataset& d) { d.chunks[3].place = kMost; }, "a chunk is outside of the dataset"},
      {chunked(), [](Hdf5Dataset& d) { d.chunks[3].offset = kFileBytes - 1; }, "beyond the end of the file"},
      {chunked(), [](Hdf5Dataset& d) { d.chunks[3].bytes = 127; },
       "does not have the size that its dataset says"},
      {chunked(), [](Hdf5Dataset& d) { d.chunks[3].bytes = kMost; }, "beyond the end of the file"},
      {chunked(),
       [](Hdf5Dataset& d) {
         d.filters = {{3, 0}};
       },
       "expected 132, found 128"},
      {chunked(),
       [](Hdf5Dataset& d) {
         d.filters = {{32000, 0}};
       },
       "filter 32000 (lzf)"},
      {chunked(),
       [](Hdf5Dataset& d) {
         d.filters = {{1, 0}, {1, 0}};
       },
       "applied twice"},
      {chunked(),
       [](Hdf5Dataset& d) {
         d.filters = {{2, 0}};
       },
       "shuffle filter gives no size"},
      {whole(), [](Hdf5Dataset& d) { d.type.numbers[8] = 126; }, "not a data type of torch"},
      {whole(), [](Hdf5Dataset& d) { d.type.bytes = kMost; }, "not a data type of torch"},
  };
  for (const Case& c : cases) {
    std::string said = judged(c.from, c.change);
    EXPECT_NE(said.find(c.says), std::string::npos) << said << ", not " << c.says;
  }
}

TEST(Hdf5Layout, FindsDatasetsThatShareBytes) {
  std::vector<Hdf5Dataset> all = {whole(), chunked(), whole()};
  all[0].address = all[2].address = 800;
  all[1].address = 900;
  using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;
  EXPECT_EQ(overlapping(all), Pairs{});  // 0 and 2 are two names of one dataset
  all[2].address = 801;
  EXPECT_EQ(overlapping(all), (Pairs{{2, 0}}));
  all[1].chunks[1].offset = 1000 + 127;
  EXPECT_EQ(overlapping(all), (Pairs{{2, 0}, {1, 1}}));
}

}  // namespace
}  // namespace mckpt::impl
