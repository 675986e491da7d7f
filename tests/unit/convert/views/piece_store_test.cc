// Pieces of tensors that are stored in chunks of any cut, compared with the items that they must have.
#include "convert/views/piece_store.h"

#include <gtest/gtest.h>

#include "tests/support/made_store.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace piece_store_test {

// Every piece [first, first + rows) of every step of a tensor [7, 2] in three chunks, several times one after
// the other.
TEST(PieceStore, HasTheRowsOfAPieceWhateverTheCuts) {
  TempFolder folder;
  for (i64 cut = 0; cut <= 7; cut++)
    for (i64 other = cut; other <= 7; other++) {
      PieceStore view(made_store(folder, {{"w", {7, 2}, 0, {cut, other}}}));
      std::vector<std::vector<i64>> expected;
      for (i64 step : {1, 2, 3})
        for (i64 first = 0; first < 7; first++)
          for (i64 rows = 1; first + (rows - 1) * step < 7; rows++) {
            view.add("piece", {rows, 2}, {{0, {}, first, rows, 0, step}});
            expected.emplace_back();
            for (i64 r = 0; r < rows; r++)
              for (i64 column : {0, 1}) expected.back().push_back((first + r * step) * 2 + column);
          }
      for (i64 t = 0; t < view.tensor_count(); t++)
        ASSERT_EQ(values_of(view, t), expected[t]) << cut << " " << other << " " << t;
    }
}

// Experts of a stack [3, 4, 2] that is cut between experts or inside of none: rows 1 and 3 of expert 2, and
// all of 0.
TEST(PieceStore, HasTheRowsOfOneIndex) {
  TempFolder folder;
  for (std::vector<i64> cuts : {std::vector<i64>{}, {1}, {2}, {1, 2}}) {
    PieceStore view(made_store(folder, {{"w", {3, 4, 2}, 0, cuts}}));
    view.add("first", {4, 2}, {{0, {0}}});
    view.add("first", {4, 2}, {{0, {0}}});
    view.add("rows", {2, 2}, {{0, {2}, 1, 2, 0, 2}});
    view.add("swapped", {4, 2}, {{0, {1}, 2, 2, 0}, {0, {1}, 0, 2, 2}});
    EXPECT_EQ(values_of(view, 0), (std::vector<i64>{0, 1, 2, 3, 4, 5, 6, 7}));
    EXPECT_EQ(values_of(view, 1), values_of(view, 0));
    EXPECT_EQ(values_of(view, 2), (std::vector<i64>{18, 19, 22, 23}));
    EXPECT_EQ(values_of(view, 3), (std::vector<i64>{12, 13, 14, 15, 8, 9, 10, 11}));
  }
}

// The tensor [2, 3] of the items 0 to 5, of which the file has the transpose.
TEST(PieceStore, HasWholeTensorsAtStridesAndNoPiecesOfThem) {
  TempFolder folder;
  std::unique_ptr<Store> made = made_store(folder, {{"transpose", {6}}});
  TableStore::Tensor& t = static_cast<TableStore&>(*made).tensors[0];
  t.dims = {2, 3};
  t.pieces[0].offsets = {0, 0};
  t.pieces[0].sizes = t.dims;
  t.pieces[0].data.strides = {1, 2};
  PieceStore view(std::move(made));
  view.add("all", {2, 3}, {{0}});
  view.add("row", {1, 3}, {{0, {}, 1, 1}});
  EXPECT_EQ(values_of(view, 0), (std::vector<i64>{0, 2, 4, 1, 3, 5}));
  std::string told = thrown_by([&] { values_of(view, 1); });
  EXPECT_EQ(told.substr(0, 6), "MC1224") << told;
}

// [4, 12] as [4, 3, 2, 2] has the same items one after the other, also where the chunks are columns: 0 to 6 and
// 7 to 11, in both orders of the two halves of the rows.
TEST(PieceStore, HasTensorsInAnotherShape) {
  TempFolder folder;
  std::vector<i64> expected(48);
  for (std::size_t i = 0; i < 48; i++) expected[i] = static_cast<i64>(i);
  auto check = [&](std::unique_ptr<Store> store) {
    PieceStore view(std::move(store));
    StorePiece piece{0};
    piece.as = {4, 3, 2, 2};
    view.add("w", piece.as, {piece});
    EXPECT_EQ(values_of(view, 0), expected);
  };
  for (const std::vector<i64>& cuts : {std::vector<i64>{}, {1}, {1, 3}, {0, 4}})
    check(made_store(folder, {{"w", {4, 12}, 0, cuts}}));
  // By columns: the file has the chunk of the first 7 columns row by row, then the chunk of the other 5.
  std::unique_ptr<Store> made = made_store(folder, {{"w", {48}}});
  std::string bytes;
  for (auto [begin, end] : {std::pair(0, 7), std::pair(7, 12)})
    for (int r = 0; r < 4; r++)
      for (int c = begin; c < end; c++) {
        float value = static_cast<float>(r * 12 + c);
        bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
      }
  folder.put("data", bytes);
  TableStore::Tensor& t = static_cast<TableStore&>(*made).tensors[0];
  t.dims = {4, 12};
  ChunkData data = t.pieces[0].data;
  t.pieces = {{{0, 0}, {4, 7}, data}, {{0, 7}, {4, 5}, data}};
  t.pieces[1].data.offset += 4 * 28;
  check(std::move(made));
}

}  // namespace piece_store_test
}  // namespace mckpt::impl
