#include "convert/compare/diff/siblings.h"

#include <gtest/gtest.h>

#include "convert/compare/diff/diff.h"
#include "convert/compare/diff/order.h"
#include "core/base/error.h"
#include "core/base/observer.h"
#include "core/base/text.h"
#include "io/store/store_view.h"
#include "tests/support/made_store.h"

namespace mckpt::impl {
namespace siblings_test {

// A store that counts how often a piece of it is asked for.
class CountedPieces final : public StoreView {
 public:
  explicit CountedPieces(const Store& source) : StoreView(source) {}
  ChunkData resolve(i64 t, i64 index) const override {
    asked++;
    return StoreView::resolve(t, index);
  }
  mutable i64 asked = 0;
};

// One family of tensors; the first item of each is its number, less `behind`.
std::vector<MadeTensor> layers(i64 count, i64 behind) {
  std::vector<MadeTensor> out;
  for (i64 t = 0; t < count; t++) out.push_back({cat("layers.", t, ".w"), {2}, (t - behind + count) * 2});
  return out;
}

TEST(Siblings, AreFoundByTheirValues) {
  TempFolder one, other;
  const auto a = made_store(one, layers(4, 0)), b = made_store(other, layers(4, 1));
  EXPECT_EQ(Siblings(*a, *b).hint(2, 2), "B has the values of layers.1.w of A here");
}

// A search among all members for each of them would read 80,000 beginnings.
TEST(Siblings, AreReadOnce) {
  constexpr i64 kCount = 200;
  TempFolder one, other;
  const auto first = made_store(one, layers(kCount, 0)), second = made_store(other, layers(kCount, -kCount));
  const CountedPieces a(*first), b(*second);
  Siblings siblings(a, b);
  for (i64 t = 0; t < kCount; t++) EXPECT_EQ(siblings.hint(t, t), "");
  EXPECT_LE(a.asked + b.asked, 2 * kCount);
}

// One family of tensors that differ in their last item alone, behind the beginning that is compared first.
std::unique_ptr<TableStore> alike_layers(const TempFolder& folder, i64 count, float first,
                                         std::string_view prefix = "layers.") {
  constexpr i64 kItems = 600;
  auto out = std::make_unique<TableStore>(folder.path());
  std::string bytes;
  for (i64 t = 0; t < count; t++) {
    ChunkData data;
    data.file = 0, data.dtype = DType::kF32, data.offset = std::ssize(bytes);
    std::vector<float> values(kItems);
    values.back() = first + static_cast<float>(t);
    bytes.append(reinterpret_cast<const char*>(values.data()), kItems * sizeof(float));
    out->tensors.push_back({cat(prefix, t, ".w"), DType::kF32, {kItems}, {{{0}, {kItems}, data}}});
  }
  folder.put("data", bytes);
  out->add_file("data", std::ssize(bytes));
  return out;
}

// A sum of all members for each of them would read 80,000.
TEST(Siblings, ThatBeginAlikeAreSummedOnce) {
  constexpr i64 kCount = 200;
  TempFolder one, other, third;
  const auto first = alike_layers(one, kCount, 1), second = alike_layers(other, kCount, 1000),
             moved = alike_layers(third, kCount, 2);
  const CountedPieces a(*first), b(*second), c(*moved);
  Siblings apart(a, b);
  for (i64 t = 0; t < kCount; t++) EXPECT_EQ(apart.hint(t, t), "");
  EXPECT_LE(a.asked + b.asked, 4 * kCount);
  Siblings behind(a, c);
  EXPECT_EQ(behind.hint(7, 7), "B has the values of layers.8.w of A here");
  EXPECT_EQ(behind.hint(kCount - 1, kCount - 1), cat("the same values as layers.", kCount - 2, ".w of B"));
}

// A store one of whose tensors cannot be read.
class Damaged final : public StoreView {
 public:
  explicit Damaged(const Store& source) : StoreView(source) {}
  ChunkData resolve(i64 t, i64 index) const override {
    if (t == 0) throw Error(Code::kBadExtent, "damaged");
    return StoreView::resolve(t, index);
  }
};

TEST(Siblings, AreFoundBehindOneThatIsDamaged) {
  TempFolder one, other;
  const auto first = made_store(one, layers(4, 0)), second = made_store(other, layers(4, 1));
  const Damaged a(*first);
  EXPECT_EQ(Siblings(a, *second).hint(2, 2), "B has the values of layers.1.w of A here");
}

// Each of A would be compared with each of B.
TEST(OrderHints, ReadRenamedTensorsOnce) {
  constexpr i64 kCount = 100;
  TempFolder one, other;
  const auto first = alike_layers(one, kCount, 1), second = alike_layers(other, kCount, 51, "blocks.");
  const CountedPieces a(*first), b(*second);
  std::vector<DiffRow> rows;
  for (i64 t = 0; t < kCount; t++) {
    rows.push_back({.kind = DiffRow::Kind::kOnlyA, .name = std::string(a.name(t)), .a = "float32 [600]"});
    rows.push_back({.kind = DiffRow::Kind::kOnlyB, .name = std::string(b.name(t)), .b = "float32 [600]"});
  }
  Observer observer;
  add_order_hints(a, b, rows, observer);
  EXPECT_EQ(rows[2 * 60].hint, "the same values as blocks.10.w of B");
  EXPECT_EQ(rows[2 * 10 + 1].hint, "the same values as layers.60.w of A");
  EXPECT_EQ(rows[0].hint, "");
  EXPECT_LE(a.asked + b.asked, 4 * kCount);
}

}  // namespace siblings_test
}  // namespace mckpt::impl
