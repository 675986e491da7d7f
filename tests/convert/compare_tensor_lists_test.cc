#include "convert/compare_tensor_lists.h"

#include <gtest/gtest.h>

#include "tests/support/table_store.h"

namespace mckpt {
namespace {

using Lines = std::vector<std::string>;

TableStore store_of(std::vector<TableStore::Tensor> tensors) {
  TableStore store("");
  store.tensors = std::move(tensors);
  return store;
}

TEST(CompareTensorLists, TellsWhatIsMissingOtherOrBesides) {
  TableStore source = store_of({{"same", DType::kBF16, {2, 3}, {}},
                                {"none", DType::kBF16, {0, 3}, {}},
                                {"scalar", DType::kF32, {}, {}},
                                {"typed", DType::kBF16, {4}, {}},
                                {"shaped", DType::kBF16, {4}, {}},
                                {"gone", DType::kBF16, {4}, {}},
                                {"left out", DType::kI64, {1}, {}}});
  TableStore there = store_of({{"more", DType::kF32, {1}, {}},
                               {"shaped", DType::kBF16, {2, 2}, {}},
                               {"typed", DType::kF16, {4}, {}},
                               {"none", DType::kBF16, {0, 3}, {}},
                               {"scalar", DType::kF32, {}, {}},
                               {"no more", DType::kF32, {0}, {}},
                               {"same", DType::kBF16, {2, 3}, {}}});
  std::vector<bool> may_lack(source.tensors.size());
  may_lack.back() = true;
  EXPECT_EQ(compare_tensor_lists(source, may_lack, there),
            (Lines{"typed did not come back as it was", "shaped did not come back as it was",
                   "gone did not come back as it was", "more came back and is not in the source",
                   "no more came back and is not in the source"}));
}

TEST(CompareTensorLists, TensorsOfNoItemsCountAsTheyAre) {
  TableStore source = store_of({{"a", DType::kBF16, {0, 3}, {}}, {"b", DType::kBF16, {0, 3}, {}}});
  TableStore there = store_of({{"a", DType::kBF16, {3, 0}, {}}, {"b", DType::kBF16, {0, 3}, {}}});
  EXPECT_EQ(compare_tensor_lists(source, std::vector<bool>(2), there),
            Lines{"a did not come back as it was"});
}

}  // namespace
}  // namespace mckpt
