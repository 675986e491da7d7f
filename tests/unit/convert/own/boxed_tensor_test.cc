// Rearranged tensors against the items that they must have, whatever the cuts of the source.
#include "convert/own/boxed_tensor.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/support/made_store.h"

namespace mckpt::impl {
namespace boxed_tensor_test {

using Index = std::vector<i64>;

i64 item(i64 expert, i64 row, i64 column) { return (expert * 4 + row) * 6 + column; }

// The tensor [3, 4, 6] of the items 0 to 71, in chunks of so many indices.
std::unique_ptr<Store> cut_store(const TempFolder& folder, const Index& chunk) {
  auto out = std::make_unique<TableStore>(folder.path());
  TableStore::Tensor t{"w", DType::kF32, {3, 4, 6}, {}};
  std::string bytes;
  for (i64 e = 0; e < 3; e += chunk[0])
    for (i64 r = 0; r < 4; r += chunk[1])
      for (i64 c = 0; c < 6; c += chunk[2]) {
        const Index sizes = {std::min(chunk[0], 3 - e), std::min(chunk[1], 4 - r), std::min(chunk[2], 6 - c)};
        ChunkData data{.file = 0, .offset = std::ssize(bytes), .dtype = DType::kF32};
        for (i64 i = 0; i < Shape(sizes).items(); i++) {
          const Index at = item_index(i, sizes);
          const float value = static_cast<float>(item(e + at[0], r + at[1], c + at[2]));
          bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
        }
        t.pieces.push_back({{e, r, c}, sizes, data});
      }
  out->tensors.push_back(std::move(t));
  folder.put("data", bytes);
  out->add_file("data", std::ssize(bytes));
  return out;
}

struct Case {
  const char* what;
  std::function<BoxedTensor(const BoxedTensor&)> made;
  Index dims;
  std::function<i64(const Index&)> value;
};

BoxedTensor joined(std::size_t dim, BoxedTensor one, BoxedTensor other) {
  one.append(dim, std::move(other));
  return one;
}

const std::vector<Case>& cases() {
  using B = BoxedTensor;
  using I = Index;
  static const std::vector<Case> all = {
      {"whole", [](const B& w) { return w; }, {3, 4, 6}, [](const I& i) { return item(i[0], i[1], i[2]); }},
      {"rows",
       [](const B& w) {
         return w.every(1, {1, 3});
       },
       {3, 3, 6},
       [](const I& i) { return item(i[0], 1 + i[1], i[2]); }},
      {"every third column",
       [](const B& w) {
         return w.every(2, {2, 2, 3});
       },
       {3, 4, 2},
       [](const I& i) { return item(i[0], i[1], 2 + 3 * i[2]); }},
      {"every second of every second",
       [](const B& w) {
         return w.every(2, {1, 3, 2}).every(2, {0, 2, 2});
       },
       {3, 4, 2},
       [](const I& i) { return item(i[0], i[1], 1 + 4 * i[2]); }},
      {"an expert",
       [](const B& w) { return w.at(0, 2); },
       {4, 6},
       [](const I& i) { return item(2, i[0], i[1]); }},
      {"a row of each",
       [](const B& w) { return w.at(1, 3); },
       {3, 6},
       [](const I& i) { return item(i[0], 3, i[1]); }},
      {"a column of one",
       [](const B& w) { return w.at(0, 1).at(1, 4); },
       {4},
       [](const I& i) { return item(1, i[0], 4); }},
      {"transposed",
       [](const B& w) { return w.swapped(1, 2); },
       {3, 6, 4},
       [](const I& i) { return item(i[0], i[2], i[1]); }},
      {"turned, and rows of it",
       [](const B& w) {
         return w.swapped(0, 2).every(0, {3, 3});
       },
       {3, 4, 3},
       [](const I& i) { return item(i[2], i[1], 3 + i[0]); }},
      {"interleaved columns",
       [](const B& w) { return w.interleaved(2, 6); },
       {3, 4, 6},
       [](const I& i) { return item(i[0], i[1], i[2] / 2 + i[2] % 2 * 3); }},
      {"interleaved in heads of 2",
       [](const B& w) { return w.at(0, 1).interleaved(0, 2); },
       {4, 6},
       [](const I& i) { return item(1, i[0], i[1]); }},
      {"interleaved rows of an expert",
       [](const B& w) { return w.at(0, 1).interleaved(0, 4); },
       {4, 6},
       [](const I& i) { return item(1, i[0] / 2 + i[0] % 2 * 2, i[1]); }},
      {"joined columns",
       [](const B& w) { return joined(1, w.at(0, 2), w.at(0, 0)); },
       {4, 12},
       [](const I& i) { return item(i[1] < 6 ? 2 : 0, i[0], i[1] % 6); }},
      {"joined, then interleaved",
       [](const B& w) { return joined(0, w.at(0, 2), w.at(0, 0)).interleaved(0, 8); },
       {8, 6},
       [](const I& i) { return item(i[0] % 2 == 0 ? 2 : 0, i[0] / 2, i[1]); }},
      {"joined, and rows of both",
       [](const B& w) {
         return joined(0, w.at(0, 2), w.at(0, 0)).every(0, {1, 3, 3});
       },
       {3, 6},
       [](const I& i) { return item(i[0] == 0 ? 2 : 0, (1 + 3 * i[0]) % 4, i[1]); }},
      {"with rows of zeros",
       [](const B& w) {
         B out = w.at(0, 1);
         out.append_zeros(2);
         return out;
       },
       {6, 6},
       [](const I& i) { return i[0] < 4 ? item(1, i[0], i[1]) : 0; }},
  };
  return all;
}

TEST(BoxedTensor, HasTheItemsOfItsRearrangementWhateverTheCuts) {
  for (const Index& chunk : {Index{3, 4, 6},
                             {1, 4, 6},
                             {2, 4, 6},
                             {3, 1, 6},
                             {3, 3, 6},
                             {3, 4, 2},
                             {3, 4, 5},
                             {2, 3, 4},
                             {1, 1, 1}}) {
    TempFolder folder;
    PieceStore view(cut_store(folder, chunk));
    for (const Case& c : cases()) {
      BoxedTensor made = c.made(BoxedTensor::whole(view.source(), 0));
      EXPECT_EQ(made.dims, c.dims) << c.what;
      view.add(c.what, std::move(made.dims), std::move(made.pieces));
    }
    for (i64 t = 0; t < view.tensor_count(); t++) {
      const Case& c = cases()[static_cast<std::size_t>(t)];
      std::vector<i64> expected;
      for (i64 i = 0; i < Shape(c.dims).items(); i++) expected.push_back(c.value(item_index(i, c.dims)));
      EXPECT_EQ(values_of(view, t), expected) << c.what << ", chunks of " << dims_to_string(chunk);
    }
  }
}

// A piece that is stored row by row is a stretch of the file, which needs no gathering.
TEST(BoxedTensor, HasNoStridesWhereItsItemsFollowEachOther) {
  TempFolder folder;
  PieceStore view(cut_store(folder, {3, 4, 6}));
  const BoxedTensor whole = BoxedTensor::whole(view.source(), 0);
  for (BoxedTensor made : {whole, whole.at(0, 2).every(0, {1, 3}), whole.every(0, {1, 1})})
    view.add("w", std::move(made.dims), std::move(made.pieces));
  for (i64 t = 0; t < view.tensor_count(); t++) EXPECT_TRUE(view.resolve(t, 0).strides.empty()) << t;
  BoxedTensor turned = whole.swapped(0, 1);
  view.add("turned", std::move(turned.dims), std::move(turned.pieces));
  EXPECT_EQ(view.resolve(3, 0).strides, (std::vector<i64>{6, 24, 1}));
}

}  // namespace boxed_tensor_test
}  // namespace mckpt::impl
