// Codes that many threads compute together, in little memory or much: those that one thread gives, and an
// error that reaches all.
#include "hf/quantized/requantizer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>

#include "hf/quantized/quantized_store.h"
#include "io/file/parallel.h"
#include "made_folder.h"
#include "tests/support/throws.h"

namespace mckpt::impl::quantized_test {
namespace {

constexpr i64 kExperts = 3, kRows = 12'000,
              kColumns = 64;  // of codes; a matrix has two bands of 1 MiB of values

// Values [experts, columns, rows], no two blocks alike.
std::string made_values(u16 first_bits) {
  std::mt19937 random(3);
  std::string bytes;
  for (i64 i = 0; i < kExperts * kRows * kColumns; i++) {
    u16 bits = static_cast<u16>((0x3c00 + random() % 0x400) | (random() % 2 << 15));
    if (i == 0) bits = first_bits;
    bytes += static_cast<char>(bits & 255);
    bytes += static_cast<char>(bits >> 8);
  }
  return bytes;
}

std::unique_ptr<Store> made(const TempFolder& folder, u16 first_bits) {
  put_model(folder,
            {{"layers.0.mlp.experts.down_proj",
              DType::kBF16,
              {kExperts, kColumns, kRows},
              made_values(first_bits)}},
            "{}");
  return open_store(folder.path());
}

Requantized how_to() {
  Requantized how{.values = 0, .turned = true, .rule = ScaleRule::kMxFloor};
  how.layout = {.codes = CodeFormat::kE2M1, .scales = DType::kU8, .block_rows = 1, .block_columns = 32};
  how.layout.matrices = kExperts, how.layout.rows = kRows, how.layout.columns = kColumns;
  return how;
}

// Codes and scales by the plain functions, expert by expert.
std::pair<std::vector<u8>, std::vector<u8>> expected(const std::string& bytes) {
  const Requantized how = how_to();
  const QuantLayout& l = how.layout;
  std::vector<u8> values(bytes.size()), codes(static_cast<std::size_t>(l.all_rows() * l.code_row_bytes())),
      scales(static_cast<std::size_t>(l.all_rows() * l.scale_row_bytes()));
  for (i64 e = 0; e < kExperts; e++)
    for (i64 r = 0; r < kRows; r++)
      for (i64 c = 0; c < kColumns; c++)
        for (i64 b : {0, 1})
          values[((e * kRows + r) * kColumns + c) * 2 + b] =
              static_cast<u8>(bytes[static_cast<std::size_t>(((e * kColumns + c) * kRows + r) * 2 + b)]);
  RowsOfValues rows{DType::kBF16, values.data(), kColumns * 2};
  make_scales(l, ScaleRule::kMxFloor, 0, l.all_rows(), rows, scales.data());
  quantize(l, 0, l.all_rows(), rows, scales.data(), nullptr, codes.data());
  return {codes, scales};
}

TEST(Requantizer, GivesTheSameToManyThreadsInAnyMemory) {
  TempFolder folder;
  std::unique_ptr<Store> values = made(folder, 0x3f80);
  const auto both = expected(made_values(0x3f80));
  for (i64 memory : {i64{1}, i64{3'000'000}, i64{128} << 20}) {
    Requantizer requantizer(*values, nullptr, memory);
    // Tensors of their own, as tasks of different threads are.
    std::vector<Requantized> hows(3, how_to());
    std::atomic<i64> wrong = 0;
    parallel_for(6, 6, [&](int, i64 i) {
      const std::vector<u8>& want = i % 2 == 0 ? both.first : both.second;
      std::shared_ptr<const ByteSource> from =
          i % 2 == 0 ? requantizer.codes(hows[i / 2]) : requantizer.scales(hows[i / 2]);
      std::mt19937 random(static_cast<unsigned>(i));
      for (i64 at = 0; at < std::ssize(want);) {
        i64 bytes = std::min<i64>(std::ssize(want) - at, 1 + static_cast<i64>(random()) % 200'000);
        std::vector<u8> part = from->read(at, bytes);
        wrong += !std::equal(part.begin(), part.end(), want.begin() + at);
        at += bytes;
      }
    });
    EXPECT_EQ(wrong, 0) << memory;
  }
}

TEST(Requantizer, RefusesInEveryThread) {
  TempFolder folder;
  std::unique_ptr<Store> values = made(folder, 0x7f80);
  Requantizer requantizer(*values, nullptr, 1);
  std::vector<Requantized> hows(6, how_to());
  std::atomic<i64> refused = 0;
  parallel_for(6, 6, [&](int, i64 i) {
    std::string told = thrown_by([&] { requantizer.codes(hows[i])->read(0, 100); });
    refused += told.find("1 infinity, the first at [0, 0, 0]") != told.npos;
  });
  EXPECT_EQ(refused, 6);
  // Other experts are sound.
  EXPECT_EQ(requantizer.codes(hows[0])->read(kRows * kColumns / 2, 100).size(), 100u);
}

}  // namespace
}  // namespace mckpt::impl::quantized_test
