// Ranks of GPUs communicate through NCCL. A call never blocks: it is polled until it is in the stream, so
// that a rank that is lost shows as an error and not as a hang. After an error the communicator is aborted,
// because the GPU would otherwise wait for ever for what does not come.
#include "live/cuda/ranks.h"

#include <array>
#include <chrono>
#include <exception>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "live/cuda/calls.h"
#include "live/cuda/lane.h"
#include "live/cuda/nccl_table.h"
#include "runtime/comm/activity.h"
#include "runtime/comm/comm.h"
#include "runtime/modules/module.h"

namespace mckpt::impl {
namespace {

const MckptNcclTable& nccl() {
  static const MckptNcclTable& table = module_functions<MckptNcclTable>("nccl");
  return table;
}

// The pause between two polls: for the first 200 microseconds the thread only yields, so that short work is
// found at once; later it sleeps, so that long work costs no core.
class Patience {
 public:
  void pause() {
    using namespace std::chrono_literals;
    if (std::chrono::steady_clock::now() - begin_ < 200us)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(50us);
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// The ranks of a job of one rank: no NCCL is loaded.
class CudaRank final : public DeviceRanks {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void all_gather(Lane& lane, std::span<const u8> mine, std::span<u8> all) override {
    if (mine.data() != all.data()) lane.copy(mine.data(), all.data(), std::ssize(mine));
  }
  void exchange(Lane&, std::span<const Part>, std::span<const Part>) override {}
  void wait(Lane& lane) override { lane.wait(); }
};

// A communicator. Used by one thread. Errors in a destructor are ignored: the rank that failed reports them.
class CudaRanks final : public DeviceRanks {
 public:
  CudaRanks(Comm& comm, void* gpu)
      : activity_(comm.activity()), gpu_(gpu), rank_(comm.rank()), size_(comm.size()) {}
  CudaRanks(const CudaRanks&) = delete;
  // All ranks end the communicator together, unless one fails: then it is aborted, because the others may be
  // gone.
  ~CudaRanks() override {
    if (std::uncaught_exceptions() > 0) abort();
    if (!comm_) return;
    try {
      call("ending", [&] { return nccl().finish(comm_); });
      nccl().release(comm_);
    } catch (const Error&) {  // reported by the rank that failed
    }
  }

  // Collective: rank 0 makes an identity and sends it to all through the Comm; then all connect.
  void connect(Comm& comm) {
    std::array<unsigned char, kMckptNcclIdBytes> id{};
    if (rank_ == 0) check(nccl().make_id(id.data()), "making an identity");
    comm.broadcast(std::as_writable_bytes(std::span(id)), 0);
    call("connecting", [&] { return nccl().connect(id.data(), size_, rank_, &comm_); });
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void all_gather(Lane& lane, std::span<const u8> mine, std::span<u8> all) override {
    if (mine.empty()) return;
    call("all_gather", [&] {
      return nccl().all_gather(comm_, mine.data(), all.data(), std::ssize(mine), cuda_lane(lane).stream());
    });
    activity_.collectives().count(CommCall::kAllGather, std::ssize(all) - std::ssize(mine));
  }

  void exchange(Lane& lane, std::span<const Part> sends, std::span<const Part> receives) override {
    std::vector<MckptNcclPart> out = parts(sends), in = parts(receives);
    if (out.empty() && in.empty()) return;
    call("exchange", [&] {
      return nccl().exchange(comm_, out.data(), static_cast<i32>(out.size()), in.data(),
                             static_cast<i32>(in.size()), cuda_lane(lane).stream());
    });
    i64 received = 0;
    for (const MckptNcclPart& part : in) received += part.bytes;
    activity_.collectives().count(CommCall::kExchange, received);
  }

  // A rank that died shows in NCCL's state; if it does not, the watch over the ranks ends this one.
  void wait(Lane& lane) override {
    Waiting waiting(activity_, "NCCL");
    for (Patience patience; !cuda_lane(lane).done(); patience.pause()) settled("waiting");
  }

 private:
  // The parts in the form of the table, without empty ones.
  static std::vector<MckptNcclPart> parts(std::span<const Part> given) {
    std::vector<MckptNcclPart> parts;
    for (const Part& p : given)
      if (p.bytes > 0) parts.push_back({p.rank, p.data, p.bytes});
    return parts;
  }

  // Calls NCCL and waits until the call has ended: only then is the work in the stream.
  template <typename Fn>
  void call(const char* what, Fn&& fn) {
    Waiting waiting(activity_, "NCCL");
    check_cuda(cuda().use_here(gpu_), "choosing the GPU");
    check(fn(), what);
    for (Patience patience; !settled(what); patience.pause()) continue;
  }

  // Whether the last call has ended. Throws if it failed, or if the communicator was aborted.
  bool settled(const char* what) {
    if (!comm_) throw Error(Code::kRanksFailed, cat("NCCL: ", what, ": an earlier call has failed"));
    bool settled = false;
    check(nccl().settled(comm_, &settled), what);
    return settled;
  }

  // Throws if a call failed. The communicator is aborted first: the GPU would wait for ever for data that do
  // not come, and with it every wait for a lane.
  void check(const char* error, const char* what) {
    if (!error) return;
    Error e(Code::kRanksFailed, cat("NCCL: ", what, ": ", escaped(error, 500)));
    abort();
    throw e;
  }

  void abort() noexcept {
    if (comm_) nccl().abort(comm_);
    comm_ = nullptr;
  }

  Activity& activity_;
  void* gpu_;
  int rank_, size_;
  void* comm_ = nullptr;
};

}  // namespace

std::unique_ptr<DeviceRanks> cuda_ranks(Comm& comm, void* gpu) {
  if (comm.size() == 1) return std::make_unique<CudaRank>();
  auto ranks = std::make_unique<CudaRanks>(comm, gpu);
  ranks->connect(comm);
  return ranks;
}

}  // namespace mckpt::impl
