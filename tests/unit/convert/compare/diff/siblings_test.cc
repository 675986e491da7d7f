#include "convert/compare/diff/siblings.h"

#include <gtest/gtest.h>

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

}  // namespace siblings_test
}  // namespace mckpt::impl
