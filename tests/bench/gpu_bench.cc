// Bytes per second of a GPU's links and of the kernel that moves items; run under mpirun, of a raw all-gather
// by NCCL as well. One line for each, best of several runs; every figure counts a byte once.
//
//   gpu_bench                    one GPU
//   mpirun -n 2 gpu_bench        one a rank; rank 0 prints
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>

#include "core/base/error.h"
#include "core/items/dtype.h"
#include "core/items/item_cast.h"
#include "core/items/move.h"
#include "live/cuda/device.h"
#include "live/device/device.h"
#include "live/device/memory.h"
#include "runtime/comm/comm.h"
#include "tests/support/job.h"

namespace mckpt::impl {
namespace {

constexpr i64 kMiB = i64{1} << 20;

class Bench {
 public:
  explicit Bench(Comm& world) : world_(world), device_(cuda_device(world)), lane_(device_->lane()) {}

  void copies() {
    constexpr i64 kBytes = 1024 * kMiB;
    Block host(device_->staging(), kBytes), gpu(device_->weights(), kBytes);
    for (i64 piece : {1 * kMiB, 4 * kMiB, 64 * kMiB}) {
      measure(cat("pinned to GPU, pieces of ", piece / kMiB, " MiB"), kBytes, [&] {
        for (i64 at = 0; at < kBytes; at += piece)
          lane_->upload({host.data() + at, static_cast<std::size_t>(piece)}, gpu.data() + at);
      });
      measure(cat("GPU to pinned, pieces of ", piece / kMiB, " MiB"), kBytes, [&] {
        for (i64 at = 0; at < kBytes; at += piece)
          lane_->download(gpu.data() + at, {host.data() + at, static_cast<std::size_t>(piece)});
      });
    }
  }

  // Pieces as the loader gives them, of a stretch that no cache holds, and what a kernel of one piece costs.
  void scatters() {
    constexpr ItemCast kSame{DType::kBF16, DType::kBF16, DType::kBF16, 0, 0};
    constexpr ItemCast kWiden{DType::kBF16, DType::kBF16, DType::kF32, 0, 0};
    constexpr ItemCast kNarrow{DType::kF32, DType::kF32, DType::kBF16, 0, 0};
    constexpr ItemCast kCentered{DType::kBF16, DType::kBF16, DType::kBF16, -1, 0};
    constexpr i64 kItems = kMiB;  // of a piece
    constexpr i64 kColumns = 2048, kRows = kItems / kColumns;
    MoveLoop halves{kColumns, kColumns / 2, kRows};
    scatter("contiguous bf16", {nullptr, nullptr, kItems, {}, {}, kSame});
    scatter("contiguous bf16, 2 bytes off", {nullptr, nullptr, kItems, {}, {}, kSame}, 2);
    scatter("bf16 to f32", {nullptr, nullptr, kItems, {}, {}, kWiden});
    scatter("bf16 to f32, 2 bytes off", {nullptr, nullptr, kItems, {}, {}, kWiden}, 2);
    scatter("f32 to bf16", {nullptr, nullptr, kItems, {}, {}, kNarrow});
    scatter("bf16 less one", {nullptr, nullptr, kItems, {}, {}, kCentered});
    scatter("row strips, halves of 2048 columns", {nullptr, nullptr, kColumns / 2, halves, {}, kSame});
    scatter("rows of 64 items taken in turn", {nullptr, nullptr, 64, {256, 64, kItems / 64}, {}, kSame});
    scatter("transpose, 512 x 2048",
            {nullptr, nullptr, 1, {kColumns, 1, kRows}, {1, kRows, kColumns}, kSame});
    scatter("transpose to f32", {nullptr, nullptr, 1, {kColumns, 1, kRows}, {1, kRows, kColumns}, kWiden});
  }

  void gathers() {
    std::unique_ptr<DeviceRanks> ranks = device_->ranks(world_);
    for (i64 mib : {1, 16, 64, 256, 1024}) {
      i64 bytes = mib * kMiB;
      Block all(device_->weights(), bytes * world_.size());
      std::span<u8> whole(all.data(), static_cast<std::size_t>(all.bytes()));
      i64 turns = std::clamp<i64>(256 / mib, 1, 32);
      std::span<const u8> mine =
          whole.subspan(static_cast<std::size_t>(bytes * world_.rank()), static_cast<std::size_t>(bytes));
      auto gather = [&] {
        for (i64 i = 0; i < turns; i++) ranks->all_gather(*lane_, mine, whole);
        ranks->wait(*lane_);
      };
      // The bytes that every rank receives.
      measure(cat("all_gather of ", mib, " MiB a rank"), turns * bytes * (world_.size() - 1), gather);
    }
  }

 private:
  // Prints the best of five, in GB/s.
  void measure(const std::string& what, i64 bytes, const std::function<void()>& fn) {
    double best = 1e9;
    for (int n = 0; n < 6; n++) {
      world_.barrier();
      auto begin = std::chrono::steady_clock::now();
      fn();
      lane_->wait();
      std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      if (n > 0) best = std::min(best, took.count());
    }
    if (world_.rank() != 0) return;
    std::printf("%-44s %8.1f GB/s\n", what.c_str(), static_cast<double>(bytes) / best / 1e9);
    std::fflush(stdout);
  }

  // The copy over and over, from piece to piece, beginning `skew` bytes behind a multiple of 256.
  void scatter(const std::string& what, ItemCopy c, i64 skew = 0) {
    constexpr i64 kPieces = 256;
    i64 from_piece = 16 * kMiB, to_piece = 16 * kMiB;
    Block from(device_->weights(), kPieces * from_piece + skew), to(device_->weights(), kPieces * to_piece);
    lane_->zero(from.data(), from.bytes());
    i64 from_item = dtype_info(c.cast.from).bits / 8;
    measure(cat(what, " (read)"), kPieces * c.items() * from_item, [&] {
      for (i64 n = 0; n < kPieces; n++) {
        c.from = from.data() + n * from_piece + skew;
        c.to = to.data() + n * to_piece;
        lane_->scatter({&c, 1});
      }
    });
  }

  Comm& world_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Lane> lane_;
};

void run() {
  Bench bench(world());
  if (world().size() == 1) bench.copies(), bench.scatters();
  if (world().size() > 1) bench.gathers();
}

}  // namespace
}  // namespace mckpt::impl

int main() {
  int status = 0;
  try {
    mckpt::impl::run();
    mckpt::impl::test_job().leave();
  } catch (const mckpt::impl::Error& e) {
    std::fprintf(stderr, "gpu_bench: %s\n", e.what());
    for (const std::string& note : e.notes()) std::fprintf(stderr, "  %s\n", note.c_str());
    status = 1;
    mckpt::impl::test_job().end(
        status, [] {}, false);
  }
  return status;
}
