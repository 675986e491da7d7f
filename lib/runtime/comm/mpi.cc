// The Comm behind the mpi module. It throws what the module's C functions return, cuts messages that are too
// large for one call, and keeps the rank's activity: the rank is waiting while a call lasts.
//
//   broadcast of 2.5 GiB           three calls, of 1, 1 and 0.5 GiB
//   all_gather of more than 1 GiB  every rank in turn broadcasts its part
#include <algorithm>

#include "core/base/error.h"
#include "runtime/comm/comm.h"
#include "runtime/comm/comm_table.h"
#include "runtime/modules/module.h"

namespace mckpt::impl {
namespace {

// Loads the module at the first call.
const MckptCommTable& comm_table() { return module_functions<MckptCommTable>("mpi"); }

// Throws kRanksFailed with the text of the module.
void check(const char* error, const char* call) {
  if (error) throw Error(Code::kRanksFailed, cat("MPI: ", call, ": ", escaped(error, 500)));
}

// The sizes of the parts of an exchange, in 32 bits and with their beginnings, as MPI takes them.
struct Parts {
  explicit Parts(std::span<const i64> bytes) {
    i64 begin = 0;
    for (i64 n : bytes) {
      counts.push_back(static_cast<i32>(n));
      begins.push_back(static_cast<i32>(begin));
      begin = checked_add(begin, n, "an exchange");
    }
    if (begin > kLargestMessage) throw Error(Code::kInternal, "an exchange is too large").found(begin);
  }
  std::vector<i32> counts, begins;
};

// A communicator of MPI. The module that `table` belongs to is never unloaded.
class MpiComm : public Comm {
 public:
  // owned: `handle` was made by split, and is released by this object.
  MpiComm(const MckptCommTable& table, void* handle, bool owned, i64 largest_message,
          std::shared_ptr<Activity> activity)
      : Comm(std::move(activity)),
        table_(table),
        handle_(handle),
        owned_(owned),
        largest_message_(largest_message) {
    check(table_.rank(handle_, &rank_), "rank");
    check(table_.size(handle_, &size_), "size");
  }
  MpiComm(const MpiComm&) = delete;
  ~MpiComm() override {
    if (owned_) table_.release(handle_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void barrier() override {
    Waiting waiting(activity(), "barrier");
    check(table_.barrier(handle_), "barrier");
    count(CommCall::kBarrier, 0);
  }

  // All ranks cut the message alike, so the pieces match.
  void broadcast(std::span<std::byte> data, int root) override {
    Waiting waiting(activity(), "broadcast");
    for (std::span<std::byte> piece; !data.empty(); data = data.subspan(piece.size())) {
      piece = data.first(std::min(data.size(), static_cast<std::size_t>(largest_message_)));
      check(table_.broadcast(handle_, piece.data(), static_cast<i32>(piece.size()), root), "broadcast");
      count(CommCall::kBroadcast, root == rank_ ? 0 : std::ssize(piece));
    }
  }

  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    Waiting waiting(activity(), "all_gather");
    if (static_cast<i64>(all.size()) <= largest_message_) {
      check(table_.all_gather(handle_, mine.data(), static_cast<i32>(mine.size()), all.data()), "all_gather");
      count(CommCall::kAllGather, std::ssize(all) - std::ssize(mine));
      return;
    }
    std::vector<i64> begins(static_cast<std::size_t>(size_) + 1);
    for (std::size_t r = 0; r < begins.size(); r++) begins[r] = static_cast<i64>(r * mine.size());
    broadcast_each(mine, all, begins);
  }

  // Sizes first, in an all_gather of one number, then the bytes.
  Gathered all_gather_v(std::span<const std::byte> mine) override {
    Waiting waiting(activity(), "all_gather_v");
    Gathered result;
    std::vector<i64> sizes(static_cast<std::size_t>(size_));
    i64 my_size = static_cast<i64>(mine.size());
    all_gather(std::as_bytes(std::span(&my_size, 1)), std::as_writable_bytes(std::span(sizes)));
    result.begins.push_back(0);
    for (i64 size : sizes) result.begins.push_back(checked_add(result.begins.back(), size, "all_gather_v"));
    result.bytes.resize(static_cast<std::size_t>(result.begins.back()));
    if (result.begins.back() > largest_message_) {
      broadcast_each(mine, result.bytes, result.begins);
      return result;
    }
    std::vector<i32> counts(sizes.begin(), sizes.end()), begins(result.begins.begin(), result.begins.end());
    check(table_.all_gather_v(handle_, mine.data(), static_cast<i32>(mine.size()), result.bytes.data(),
                              counts.data(), begins.data()),
          "all_gather_v");
    count(CommCall::kAllGatherV, std::ssize(result.bytes) - my_size);
    return result;
  }

  void exchange(std::span<const std::byte> send, std::span<const i64> send_bytes,
                std::span<std::byte> receive, std::span<const i64> receive_bytes) override {
    Waiting waiting(activity(), "exchange");
    Parts out(send_bytes), in(receive_bytes);
    check(table_.exchange(handle_, send.data(), out.counts.data(), out.begins.data(), receive.data(),
                          in.counts.data(), in.begins.data()),
          "exchange");
    const i64 own = receive_bytes[static_cast<std::size_t>(rank_)];
    count(CommCall::kExchange, std::ssize(receive) - own);
  }

  void all_reduce(std::span<i64> numbers, Reduce op) override {
    Waiting waiting(activity(), "all_reduce");
    std::size_t most = static_cast<std::size_t>(std::max<i64>(1, largest_message_ / 8));
    for (std::span<i64> piece; !numbers.empty(); numbers = numbers.subspan(piece.size())) {
      piece = numbers.first(std::min(numbers.size(), most));
      check(table_.all_reduce(handle_, piece.data(), static_cast<i32>(piece.size()),
                              op == Reduce::kSum ? kMckptReduceSum : kMckptReduceMax),
            "all_reduce");
      count(CommCall::kAllReduce, std::ssize(piece) * static_cast<i64>(sizeof(i64)));
    }
  }

  std::unique_ptr<Comm> split(int color, int key) override {
    Waiting waiting(activity(), "split");
    void* part = nullptr;
    check(table_.split(handle_, color, key, &part), "split");
    count(CommCall::kSplit, 0);
    return part ? std::make_unique<MpiComm>(table_, part, true, largest_message_, shared_activity())
                : nullptr;
  }

  void abort(int status) override { table_.abort(status); }

 private:
  void count(CommCall call, i64 received) { activity().collectives().count(call, received); }

  // Every rank in turn broadcasts its part of `all`: for contributions that are too large for one all_gather.
  void broadcast_each(std::span<const std::byte> mine, std::span<std::byte> all,
                      std::span<const i64> begins) {
    auto own = all.begin() + begins[rank_];
    if (mine.data() != std::to_address(own)) std::copy(mine.begin(), mine.end(), own);
    for (std::size_t r = 0; r + 1 < begins.size(); r++)
      broadcast(all.subspan(static_cast<std::size_t>(begins[r]),
                            static_cast<std::size_t>(begins[r + 1] - begins[r])),
                static_cast<int>(r));
  }

  const MckptCommTable& table_;
  void* handle_;
  bool owned_;
  i64 largest_message_;
  i32 rank_ = 0, size_ = 1;
};

}  // namespace

// The Comm of all ranks. MPI is initialised for calls from several threads, one at a time.
std::unique_ptr<Comm> mpi_comm(i64 largest_message) {
  const MckptCommTable& table = comm_table();
  void* world = nullptr;
  check(table.init(kMckptThreadsSerialized, &world), "init");
  return std::make_unique<MpiComm>(table, world, false, largest_message, std::make_shared<Activity>());
}

void finalize_mpi() { check(comm_table().finalize(), "finalize"); }

}  // namespace mckpt::impl
