// A device's conversions of values, bit for bit, against lib/core.
#include <gtest/gtest.h>

#include <bit>

#include "core/base/text.h"
#include "core/items/apply_move.h"
#include "core/items/dtype.h"
#include "core/items/item_cast.h"
#include "core/items/move.h"
#include "live/device/device.h"
#include "tests/support/run_samples.h"
#include "tests/unit/live/devices.h"

namespace mckpt::impl {
namespace {

class DeviceConvertTest : public OnDevice {};

// Every pair of types over every pattern of 16 bits, and for the wide types values around the borders of
// the narrow ones.
std::vector<u8> patterns(DType type) {
  std::vector<u8> out;
  auto add = [&](auto bits) {
    const u8* p = reinterpret_cast<const u8*>(&bits);
    out.insert(out.end(), p, p + sizeof bits);
  };
  auto add_float = [&](float f) {
    if (type == DType::kF32) add(f);
    if (type == DType::kF64) add(static_cast<double>(f));
  };
  for (u32 b = 0; b < 65536; b++) {
    if (type == DType::kBF16 || type == DType::kF16) add(static_cast<u16>(b));
    for (u32 low : {0u, 0x8000u, 0x8001u}) add_float(std::bit_cast<float>(b << 16 | low));
  }
  std::mt19937_64 random(9);
  if (type == DType::kF64)
    for (int n = 0; n < 50000; n++) {
      u64 bits = random();
      // Between the floats, and among the subnormal ones.
      if (n % 2 == 0) bits = (bits & 0x800fffffffffffff) | (896 - 30 + random() % 320) << 52;
      add(std::bit_cast<double>(bits));
    }
  return out;
}

TEST_P(DeviceConvertTest, ConvertsEveryPatternAsTheHostDoes) {
  DType types[] = {DType::kBF16, DType::kF16, DType::kF32, DType::kF64};
  for (DType from_type : types) {
    std::vector<u8> from = patterns(from_type);
    i64 items = std::ssize(from) / (dtype_info(from_type).bits / 8);
    for (DType via : types)
      for (DType to_type : types)
        for (auto [before, after] : {std::pair(0.f, 0.f), {-1.f, 0.f}, {0.f, 1.f}, {0.25f, -3e-6f}}) {
          ItemCast c{from_type, via, to_type, before, after};
          std::vector<u8> expected(static_cast<std::size_t>(items * dtype_info(to_type).bits / 8));
          cast_items(c, from.data(), expected.data(), items);
          scatter_and_check({{from.data(), expected.data(), items, {}, {}, c}}, from, expected,
                            cat(dtype_name(from_type), " via ", dtype_name(via), " to ", dtype_name(to_type),
                                ", adding ", before, " and ", after));
        }
  }
}

TEST_P(DeviceConvertTest, ConvertsInStripsAndTransposes) {
  for (auto [from_type, to_type] : {std::pair(DType::kBF16, DType::kF32), {DType::kF32, DType::kBF16}}) {
    i64 from_item = dtype_info(from_type).bits / 8, to_item = dtype_info(to_type).bits / 8;
    for (i64 length : {1, 3, 8, 63, 64, 200}) {
      Move m = move_of({0, 2, length, {300, 70}, {25000, 2}}, 5);
      if (length == 1) m = move_of({0, 2, 1, {300, 70}, {1, 290}}, 5);
      std::vector<u8> from = random_bytes(m.source().end() * from_item, 8),
                      wide(from.size() / static_cast<std::size_t>(from_item) *
                           static_cast<std::size_t>(to_item)),
                      expected(static_cast<std::size_t>(m.destination().end() * to_item), 0xEE);
      ItemCast c{from_type, from_type, to_type, 0, 0.5f};
      cast_items(c, from.data(), wide.data(), m.source().end());
      apply_move(m, to_item, {wide.data(), 0}, {expected.data(), 0});
      scatter_and_check({{from.data() + m.from * from_item, expected.data() + m.to * to_item, m.length,
                          m.inner, m.outer, c}},
                        from, expected, cat(dtype_name(from_type), " ", to_string(m)));
    }
  }
}

// Data of files begin at any byte, and parts of unlike widths are packed back to back.
TEST_P(DeviceConvertTest, ConvertsFromAnyByteToAnyByte) {
  constexpr i64 kLength = 24, kRows = 3, kFromStride = 32, kToStride = 40, kStretch = 1008;  // 63 * 16
  const DType types[] = {DType::kBF16, DType::kF16, DType::kF32, DType::kF64};
  const i64 skews[] = {0, 1, 2, 3, 4, 6, 8, 15};
  constexpr i64 kBytes = std::ssize(skews) * std::ssize(skews) * kStretch;
  std::vector<u8> from = random_bytes(kBytes, 6);
  for (DType from_type : types)
    for (DType via : types)
      for (DType to_type : types) {
        ItemCast c{from_type, via, to_type, 0, 0.5f};
        i64 from_row = dtype_bytes(from_type, kFromStride), to_row = dtype_bytes(to_type, kToStride);
        std::vector<u8> expected(static_cast<std::size_t>(kBytes), 0xEE);
        std::vector<ItemCopy> copies;
        for (i64 from_skew : skews)
          for (i64 to_skew : skews) {
            i64 at = std::ssize(copies) * kStretch;
            const u8* source = from.data() + at + from_skew;
            u8* destination = expected.data() + at + to_skew;
            copies.push_back({source, destination, kLength, {kFromStride, kToStride, kRows}, {}, c});
            for (i64 r = 0; r < kRows; r++)
              cast_items(c, source + r * from_row, destination + r * to_row, kLength);
          }
        scatter_and_check(copies, from, expected,
                          cat(dtype_name(from_type), " via ", dtype_name(via), " to ", dtype_name(to_type)));
      }
}

INSTANTIATE_TEST_SUITE_P(, DeviceConvertTest, kTestDevices, device_label);

}  // namespace
}  // namespace mckpt::impl
