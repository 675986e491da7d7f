// Bytes of values per second that one core makes of codes, and codes of values: a block of rows that stays in
// the second cache. "Plain" is the code for any processor. memcpy of as many bytes is what there is to
// compare with.
#include <benchmark/benchmark.h>

#include <cstring>
#include <random>
#include <vector>

#include "core/quantized/dequantize.h"
#include "core/quantized/plain_values.h"
#include "core/quantized/quantize.h"

namespace mckpt::impl {
namespace {

constexpr i64 kRows = 64, kColumns = 4096;

QuantLayout layout_of(CodeFormat codes, DType scales, i64 block_rows, i64 block_columns) {
  QuantLayout s;
  s.codes = codes, s.scales = scales;
  s.rows = kRows, s.columns = kColumns, s.block_rows = block_rows, s.block_columns = block_columns;
  return s;
}

const QuantLayout kFp8 = layout_of(CodeFormat::kE4M3, DType::kF32, 128, 128);
const QuantLayout kMxfp8 = layout_of(CodeFormat::kE4M3, DType::kU8, 1, 32);
const QuantLayout kMxfp4 = layout_of(CodeFormat::kE2M1, DType::kU8, 1, 32);
const QuantLayout kNvfp4 = layout_of(CodeFormat::kE2M1, DType::kF8E4M3, 1, 16);
const QuantLayout kInt4 = layout_of(CodeFormat::kPackedInt, DType::kBF16, 1, 32);

struct Tensor {
  explicit Tensor(const QuantLayout& s)
      : codes(static_cast<std::size_t>(s.rows * s.code_row_bytes())),
        scales(static_cast<std::size_t>(s.scale_rows() * s.scale_row_bytes())),
        values(static_cast<std::size_t>(s.rows * s.columns * 4)) {
    std::mt19937 random(1);
    for (u8& code : codes) code = static_cast<u8>(random() & 0x77);
    if (s.scales == DType::kF32) {
      for (std::size_t i = 0; i < scales.size() / 4; i++) {
        float scale = 1e-3f + static_cast<float>(i) * 1e-5f;
        std::memcpy(scales.data() + 4 * i, &scale, 4);
      }
    } else {
      for (u8& byte : scales) byte = static_cast<u8>(s.scales == DType::kBF16 ? 0x3b : 115 + random() % 8);
    }
  }
  StoredBytes at(const QuantLayout& s) const {
    return {codes.data(), s.code_row_bytes(), scales.data(), s.scale_row_bytes(), nullptr};
  }
  std::vector<u8> codes, scales, values;
};

void run(benchmark::State& state, const QuantLayout& s, DType to, Processor processor) {
  Tensor t(s);
  i64 row = dtype_bytes(to, kColumns);
  for (auto _ : state) {
    dequantize_on(processor, s, {0, kRows, 0, kColumns}, t.at(s), to, t.values.data(), row);
    benchmark::DoNotOptimize(t.values.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * kRows * row);
}

void run_turned(benchmark::State& state, const QuantLayout& s) {
  Tensor t(s);
  for (auto _ : state) {
    dequantize_turned(s, {0, kRows, 0, kColumns}, t.at(s), DType::kBF16, t.values.data(), kRows * 2);
    benchmark::DoNotOptimize(t.values.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * kRows * kColumns * 2);
}

// Runs over bf16 values, counted in bytes of these.
void run_quantize(benchmark::State& state, const QuantLayout& s, ScaleRule rule) {
  Tensor t(s);
  dequantize(s, {0, kRows, 0, kColumns}, t.at(s), DType::kBF16, t.values.data(), kColumns * 2);
  RowsOfValues values{DType::kBF16, t.values.data(), kColumns * 2};
  for (auto _ : state) {
    make_scales(s, rule, 0, kRows, values, t.scales.data());
    benchmark::DoNotOptimize(quantize(s, 0, kRows, values, t.scales.data(), nullptr, t.codes.data()));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * kRows * kColumns * 2);
}

void BM_Memcpy(benchmark::State& state) {
  std::vector<u8> from(kRows * kColumns * 2, 1), to(from.size());
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), from.size());
    benchmark::DoNotOptimize(to.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<i64>(to.size()));
}
BENCHMARK(BM_Memcpy);

#define BENCH_DEQUANTIZE(name, layout) \
  void BM_##name(benchmark::State& state) { run(state, layout, DType::kBF16, best_processor()); } \
  void BM_##name##ToF32(benchmark::State& state) { run(state, layout, DType::kF32, best_processor()); } \
  void BM_##name##Plain(benchmark::State& state) { run(state, layout, DType::kBF16, Processor::kAny); } \
  BENCHMARK(BM_##name); \
  BENCHMARK(BM_##name##ToF32); \
  BENCHMARK(BM_##name##Plain)

BENCH_DEQUANTIZE(Fp8, kFp8);
BENCH_DEQUANTIZE(Mxfp8, kMxfp8);
BENCH_DEQUANTIZE(Mxfp4, kMxfp4);
BENCH_DEQUANTIZE(Nvfp4, kNvfp4);
BENCH_DEQUANTIZE(Int4, kInt4);

void BM_Mxfp4Turned(benchmark::State& state) { run_turned(state, kMxfp4); }
BENCHMARK(BM_Mxfp4Turned);
void BM_QuantizeFp8(benchmark::State& state) { run_quantize(state, kFp8, ScaleRule::kAmax); }
BENCHMARK(BM_QuantizeFp8);
void BM_QuantizeMxfp4(benchmark::State& state) { run_quantize(state, kMxfp4, ScaleRule::kMxFloor); }
BENCHMARK(BM_QuantizeMxfp4);

}  // namespace
}  // namespace mckpt::impl

BENCHMARK_MAIN();
