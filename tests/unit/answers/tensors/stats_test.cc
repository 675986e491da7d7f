// Statistics as JSON: exact extremes of integers, null without finite values, places of the first NaN; the bars
// of the table; and which tensors the norm of the model counts.
#include "tools/answers/tensors/stats.h"

#include <gtest/gtest.h>

#include "core/base/text.h"
#include "io/json/json_writer.h"
#include "io/values/stats_list.h"
#include "io/values/tensor_stats.h"
#include "tests/support/table_store.h"
#include "tools/render/output.h"

namespace mckpt::impl {
namespace stats_test {

TableStore store_of(std::vector<TableStore::Tensor> tensors) {
  TableStore store("/made");
  store.tensors = std::move(tensors);
  return store;
}

std::string json_of(const Store& store, const TensorStats& s) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  write_stats(json, store, 0, s);
  json.end_object();
  return text;
}

TensorStats some(i64 numbers, long double min, long double max) {
  TensorStats s;
  s.numbers = s.finite = numbers, s.min = min, s.max = max;
  s.mean = 1.5, s.deviation = 0.5, s.sum_of_squares = 25;
  return s;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(StatsAnswer, HasTheFieldsOfStatisticsUnderTheProgramsNames) {
  TensorStats s = some(4, -2, 3);
  s.zeros = 1, s.histogram = {3, 1};
  EXPECT_EQ(
      json_of(store_of({{"w", DType::kF32, {2, 2}, {}}}), s),
      R"({"name": "w", "dtype": "float32", "shape": [2, 2], "count": 4, "finite": 4, "min": -2, "max": 3, )"
      R"("mean": 1.5, "std": 0.5, "l2": 5, "zeros": 1, "nan": 0, "inf": 0, "first_nan": null, )"
      R"("first_inf": null, "histogram": [3, 1]})");
}

TEST(StatsAnswer, KeepsIntegersBeyondADouble) {
  const std::string text =
      json_of(store_of({{"n", DType::kU64, {2}, {}}}), some(2, 3, 18446744073709551615.0L));
  EXPECT_TRUE(has(text, R"("max": 18446744073709551615)")) << text;
  const std::string low = json_of(store_of({{"n", DType::kI64, {2}, {}}}), some(2, -9007199254740993.0L, 5));
  EXPECT_TRUE(has(low, R"("min": -9007199254740993)")) << low;
}

TEST(StatsAnswer, HasNoExtremesWithoutFiniteValues) {
  TensorStats s;
  s.numbers = 6, s.non_finite.nans = 2, s.non_finite.first_nan = 4, s.non_finite.infinities = 4;
  s.non_finite.first_infinity = 0;
  const std::string text = json_of(store_of({{"w", DType::kF32, {2, 3}, {}}}), s);
  EXPECT_TRUE(has(
      text, R"("count": 6, "finite": 0, "min": null, "max": null, "mean": null, "std": null, "l2": null)"))
      << text;
  EXPECT_TRUE(has(text, R"("nan": 2, "inf": 4, "first_nan": [1, 1], "first_inf": [0, 0])")) << text;
}

TEST(StatsAnswer, CountsTwoNumbersOfAComplexItem) {
  TensorStats s = some(8, 0, 1);
  s.non_finite.nans = 1, s.non_finite.first_nan = 5;
  EXPECT_TRUE(has(json_of(store_of({{"c", DType::kC64, {4}, {}}}), s), R"("first_nan": [2])"));
}

TEST(StatsAnswer, ShowsABarForEveryBinThatHasAValue) {
  GlobalFlags flags;
  flags.ascii = true;
  Output out(flags);
  TensorStats s = some(1001, 0, 1);
  s.histogram = {1000, 0, 1, 500};
  const TableStore store = store_of({{"w", DType::kF32, {1001}, {}}});
  const i64 tensor = 0;
  StatsList stats;
  stats.add(s);
  write_stats(out, store, {&tensor, 1}, stats);
  const std::string text = std::exchange(out.buffer(), "");
  EXPECT_TRUE(has(text, "|# .:|")) << text;
  EXPECT_TRUE(has(text, "L2 of all parameters  5  (1 tensor)")) << text;
}

TEST(GlobalNorm, CountsTheModelsParametersAlone) {
  const TableStore store = store_of({{"model.w", DType::kF32, {2}, {}},
                                     {"optimizer.state.exp_avg.w", DType::kF32, {2}, {}},
                                     {"model.b", DType::kF32, {2}, {}}});
  StatsList stats;
  for (int squares : {9, 100, 16}) {
    TensorStats s = some(2, 0, 1);
    s.sum_of_squares = squares;
    stats.add(s);
  }
  const std::vector<i64> all = {0, 1, 2};
  const GlobalNorm norm = global_norm(store, all, stats);
  EXPECT_EQ(norm.l2.value(), 5);
  EXPECT_EQ(norm.tensors, 2);
  EXPECT_EQ(norm.others, 1);
}

}  // namespace stats_test
}  // namespace mckpt::impl
