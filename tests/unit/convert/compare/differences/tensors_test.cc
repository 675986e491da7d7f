#include "convert/compare/differences/tensors.h"

#include <gtest/gtest.h>

#include "tests/support/table_store.h"

namespace mckpt::impl {
namespace {

using Differences = std::vector<TensorDifference>;

TableStore store_of(std::vector<TableStore::Tensor> tensors) {
  TableStore store("");
  store.tensors = std::move(tensors);
  return store;
}

TEST(TensorDifferences, AreWhatIsMissingOtherOrBesides) {
  TableStore source = store_of({{"same", DType::kBF16, {2, 3}, {}},
                                {"none", DType::kBF16, {0, 3}, {}},
                                {"scalar", DType::kF32, {}, {}},
                                {"typed", DType::kBF16, {4}, {}},
                                {"shaped", DType::kBF16, {4}, {}},
                                {"gone.10", DType::kBF16, {4}, {}},
                                {"gone.9", DType::kI64, {1}, {}}});
  TableStore there = store_of({{"more", DType::kF32, {1}, {}},
                               {"shaped", DType::kBF16, {2, 2}, {}},
                               {"typed", DType::kF16, {4}, {}},
                               {"none", DType::kBF16, {0, 3}, {}},
                               {"scalar", DType::kF32, {}, {}},
                               {"no more", DType::kF32, {0}, {}},
                               {"same", DType::kBF16, {2, 3}, {}}});
  EXPECT_EQ(tensor_differences(source, there),
            (Differences{{6, -1}, {5, -1}, {4, 1}, {3, 2}, {-1, 0}, {-1, 5}}));
}

TEST(TensorDifferences, TensorsOfNoItemsCountAsTheyAre) {
  TableStore source = store_of({{"a", DType::kBF16, {0, 3}, {}}, {"b", DType::kBF16, {0, 3}, {}}});
  TableStore there = store_of({{"a", DType::kBF16, {3, 0}, {}}, {"b", DType::kBF16, {0, 3}, {}}});
  EXPECT_EQ(tensor_differences(source, there), (Differences{{0, 0}}));
}

TEST(TensorDifferences, ASecondTensorOfOneNameHasNoPartner) {
  TableStore one = store_of({{"a", DType::kBF16, {2}, {}}});
  TableStore two = store_of({{"a", DType::kBF16, {2}, {}}, {"a", DType::kBF16, {2}, {}}});
  EXPECT_EQ(tensor_differences(two, one), (Differences{{1, -1}}));
}

TEST(TensorDifferences, TypesAndShapesAreNamedTogether) {
  TableStore store = store_of({{"a", DType::kBF16, {2, 3}, {}}, {"b", DType::kF32, {}, {}}});
  EXPECT_EQ(type_and_shape(store, 0), "bfloat16 [2, 3]");
  EXPECT_EQ(type_and_shape(store, 1), "float32 []");
}

}  // namespace
}  // namespace mckpt::impl
