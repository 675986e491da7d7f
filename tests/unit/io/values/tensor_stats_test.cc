#include "io/values/tensor_stats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <mutex>
#include <random>

#include "core/base/text.h"
#include "io/values/element.h"
#include "tests/support/equal_stats.h"
#include "tests/support/table_store.h"
#include "tests/support/temp_folder.h"

namespace mckpt::impl {
namespace {

struct Sample {
  Sample() : store(folder.path()) {}

  void add(DType dtype, i64 items, const std::string& bytes) {
    std::string name = cat("t", static_cast<i64>(store.tensors.size()));
    folder.put(name, bytes);
    i32 file = store.add_file(name, static_cast<i64>(bytes.size()));
    store.tensors.push_back({name, dtype, {items}, {{{0}, {items}, {.file = file, .dtype = dtype}}}});
  }

  std::vector<TensorStats> stats(int bins, int threads) {
    std::vector<i64> all;
    for (i64 t = 0; t < store.tensor_count(); t++) all.push_back(t);
    return tensor_stats(store, all, bins, threads, [](i64) {});
  }

  TempFolder folder;
  TableStore store;
};

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// In long double, one number after the other.
TensorStats naive(DType dtype, const std::string& bytes, int bins) {
  TensorStats s;
  const u8* data = reinterpret_cast<const u8*>(bytes.data());
  s.numbers = static_cast<i64>(bytes.size()) * 8 / element_form(dtype).number_bits;
  long double sum = 0, squares = 0;
  for (i64 i = 0; i < s.numbers; i++) {
    double v = number_at(dtype, data, i);
    s.non_finite.nans += std::isnan(v);
    s.non_finite.infinities += std::isinf(v);
    if (!std::isfinite(v)) continue;
    s.min = s.finite == 0 ? v : std::min<long double>(s.min, v);
    s.max = s.finite == 0 ? v : std::max<long double>(s.max, v);
    s.finite++;
    s.zeros += v == 0;
    sum += v;
    s.sum_of_squares += static_cast<long double>(v) * static_cast<long double>(v);
  }
  if (s.finite == 0) return s;
  long double mean = sum / static_cast<long double>(s.finite);
  s.histogram.resize(static_cast<std::size_t>(bins));
  for (i64 i = 0; i < s.numbers; i++) {
    double v = number_at(dtype, data, i);
    if (!std::isfinite(v)) continue;
    squares += (v - mean) * (v - mean);
    double width = static_cast<double>(s.max - s.min);
    std::size_t bin =
        width > 0 ? static_cast<std::size_t>((v - static_cast<double>(s.min)) * (bins / width)) : 0;
    s.histogram[std::min(bin, s.histogram.size() - 1)]++;
  }
  s.mean = static_cast<double>(mean);
  s.deviation = static_cast<double>(std::sqrt(squares / static_cast<long double>(s.finite)));
  return s;
}

TEST(TensorStats, AgreeWithANaiveLoopForEveryType) {
  std::mt19937_64 random(3);
  Sample sample;
  std::vector<std::pair<DType, std::string>> cases;
  for (const DTypeInfo& info : all_dtypes()) {
    for (i64 items : {1, 24, 5000, 90000}) {
      std::string bytes(
          static_cast<std::size_t>(dtype_bytes(info.dtype, items * 8 / std::max(1, info.bits % 8 ? 1 : 8))),
          '\0');
      for (char& b : bytes) b = static_cast<char>(random());
      // Random exponents would overflow the squares: keep the magnitudes of doubles and floats near one.
      i64 width = element_form(info.dtype).number_bits / 8;
      if (element_form(info.dtype).kind == ElementForm::Kind::kF32 ||
          element_form(info.dtype).kind == ElementForm::Kind::kF64)
        for (std::size_t i = static_cast<std::size_t>(width) - 1; i < bytes.size();
             i += static_cast<std::size_t>(width))
          bytes[i] = static_cast<char>(random() % 2 ? 0x3f : 0xbf);
      cases.emplace_back(info.dtype, bytes);
      sample.add(info.dtype, static_cast<i64>(bytes.size()) * 8 / info.bits, bytes);
    }
  }
  for (int threads : {1, 3}) {
    std::vector<TensorStats> found = sample.stats(7, threads);
    ASSERT_EQ(found.size(), cases.size());
    for (std::size_t i = 0; i < cases.size(); i++) {
      TensorStats expected = naive(cases[i].first, cases[i].second, 7);
      SCOPED_TRACE(
          cat(dtype_name(cases[i].first), " of ", static_cast<i64>(cases[i].second.size()), " bytes"));
      EXPECT_EQ(found[i].numbers, expected.numbers);
      EXPECT_EQ(found[i].finite, expected.finite);
      EXPECT_EQ(found[i].zeros, expected.zeros);
      EXPECT_EQ(found[i].non_finite.nans, expected.non_finite.nans);
      EXPECT_EQ(found[i].non_finite.infinities, expected.non_finite.infinities);
      EXPECT_EQ(static_cast<double>(found[i].min), static_cast<double>(expected.min));
      EXPECT_EQ(static_cast<double>(found[i].max), static_cast<double>(expected.max));
      double scale = std::abs(expected.mean) + expected.deviation;
      EXPECT_NEAR(found[i].mean, expected.mean, 1e-12 * scale);
      EXPECT_NEAR(found[i].deviation, expected.deviation, 1e-9 * scale);
      EXPECT_NEAR(l2_norm(found[i]), l2_norm(expected), 1e-13 * l2_norm(expected));
      EXPECT_EQ(found[i].histogram, expected.histogram);
    }
  }
}

TEST(TensorStats, LoseNoDigitsToALargeMean) {
  Sample sample;
  std::vector<double> values;
  for (int i = 0; i < 100'000; i++) values.push_back(1e9 + i % 2);
  sample.add(DType::kF64, 100'000, bytes_of(values));
  TensorStats s = sample.stats(0, 1)[0];
  EXPECT_DOUBLE_EQ(s.deviation, 0.5);
  EXPECT_DOUBLE_EQ(s.mean, 1e9 + 0.5);
  EXPECT_TRUE(s.histogram.empty());
}

TEST(TensorStats, KeepLargeIntegersExact) {
  Sample sample;
  sample.add(DType::kI64, 3, bytes_of(std::vector<i64>{INT64_MAX, INT64_MAX - 1, INT64_MIN}));
  sample.add(DType::kU64, 2, bytes_of(std::vector<u64>{UINT64_MAX, UINT64_MAX - 1}));
  std::vector<TensorStats> s = sample.stats(4, 1);
  EXPECT_EQ(static_cast<i64>(s[0].max), INT64_MAX);
  EXPECT_EQ(static_cast<i64>(s[0].min), INT64_MIN);
  EXPECT_EQ(static_cast<u64>(s[1].max), UINT64_MAX);
  EXPECT_EQ(static_cast<u64>(s[1].min), UINT64_MAX - 1);
}

TEST(TensorStats, LeaveOutWhatIsNotFinite) {
  Sample sample;
  float nan = NAN, inf = INFINITY;
  sample.add(DType::kF32, 5, bytes_of(std::vector<float>{nan, -2, inf, 2, -inf}));
  sample.add(DType::kF32, 2, bytes_of(std::vector<float>{nan, inf}));
  sample.add(DType::kF32, 0, "");
  std::vector<TensorStats> s = sample.stats(2, 2);
  EXPECT_EQ(s[0].finite, 2);
  EXPECT_EQ(s[0].mean, 0);
  EXPECT_EQ(s[0].deviation, 2);
  EXPECT_EQ(s[0].histogram, (std::vector<i64>{1, 1}));
  EXPECT_EQ(s[0].non_finite.first_infinity, 2);
  EXPECT_EQ(s[1].finite, 0);
  EXPECT_TRUE(s[1].histogram.empty());
  EXPECT_EQ(s[2].numbers, 0);
}

// Tensors of no to four floats in one file, more of them than each_tensor_stats() reads at once, from the last one to
// the first.
TEST(TensorStats, AreTheSameOneByOneForALongList) {
  constexpr i64 kTensors = (1 << 14) + 100;
  TempFolder folder;
  TableStore store(folder.path());
  std::vector<float> values;
  for (i64 t = 0; t < kTensors; t++) {
    const i64 items = t % 5, offset = std::ssize(values) * 4;
    for (i64 i = 0; i < items; i++) values.push_back(static_cast<float>(t * (i + 1) % 1013 - 500));
    if (items > 0 && t % 7 == 0) values.back() = NAN;
    store.tensors.push_back({cat("t", t),
                             DType::kF32,
                             {items},
                             {{{0}, {items}, {.file = 0, .offset = offset, .dtype = DType::kF32}}}});
  }
  folder.put("all", bytes_of(values));
  store.add_file("all", std::ssize(values) * 4);
  std::vector<i64> from_last;
  for (i64 t = kTensors - 1; t >= 0; t--) from_last.push_back(t);
  i64 expected_bytes = 0;
  const std::vector<TensorStats> expected =
      tensor_stats(store, from_last, 4, 1, [&](i64 bytes) { expected_bytes += bytes; });
  EXPECT_EQ(stats_bytes(store, from_last, 4), expected_bytes);
  EXPECT_EQ(stats_bytes(store, from_last, 0) * 2, expected_bytes);
  for (int threads : {1, 3}) {
    i64 read = 0;
    std::mutex mutex;
    std::size_t at = 0;
    auto count = [&](i64 bytes) {
      std::lock_guard lock(mutex);
      read += bytes;
    };
    each_tensor_stats(store, from_last, 4, threads, count, [&](const TensorStats& s) {
      ASSERT_LT(at, expected.size());
      const TensorStats& e = expected[at++];
      SCOPED_TRACE(cat("place ", static_cast<i64>(at - 1), ", threads ", threads));
      expect_equal(s, e);
    });
    EXPECT_EQ(at, expected.size());
    EXPECT_EQ(read, expected_bytes);
  }
}

}  // namespace
}  // namespace mckpt::impl
