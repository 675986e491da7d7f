// Ranks that work together: who am I, how many are we, and the few collectives that planning needs. Every
// rank of a Comm calls the collectives in the same order; a failure throws Error(kRanksFailed) with the
// library's own words.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "core/base/int.h"
#include "runtime/comm/activity.h"

namespace mckpt::impl {

enum class Reduce { kSum, kMax };

// Messages are cut into pieces of at most so many bytes, since MPI counts in 32 bits.
inline constexpr i64 kLargestMessage = i64{1} << 30;

// What every rank gave, in rank order.
struct Gathered {
  std::vector<std::byte> bytes;
  std::vector<i64> begins;  // one more than there are ranks

  std::span<const std::byte> of(int rank) const {
    std::size_t r = static_cast<std::size_t>(rank);
    return std::span(bytes).subspan(static_cast<std::size_t>(begins[r]),
                                    static_cast<std::size_t>(begins[r + 1] - begins[r]));
  }
};

class Comm {
 public:
  explicit Comm(std::shared_ptr<Activity> activity = std::make_shared<Activity>())
      : activity_(std::move(activity)) {}
  virtual ~Comm() = default;
  Activity& activity() const { return *activity_; }  // of this rank
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual void barrier() = 0;
  virtual void broadcast(std::span<std::byte> data, int root) = 0;
  // pre: `mine` has the same size in every rank, and `all` has that size times the number of ranks. In every
  // rank, or in none, `mine` may be its own place in `all`.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  virtual Gathered all_gather_v(std::span<const std::byte> mine) = 0;
  // Every rank gives every rank a part: `send` has them one after the other, send_bytes[r] of them for rank
  // r, and `receive` gets receive_bytes[r] of them from rank r. pre: both are at most kLargestMessage bytes.
  virtual void exchange(std::span<const std::byte> send, std::span<const i64> send_bytes,
                        std::span<std::byte> receive, std::span<const i64> receive_bytes) = 0;
  // pre: every rank has as many numbers.
  virtual void all_reduce(std::span<i64> numbers, Reduce op) = 0;
  // Ranks of one colour form a new Comm, ordered by key and then by rank. Null where the colour is negative.
  virtual std::unique_ptr<Comm> split(int color, int key) = 0;
  // Has the launcher end every rank of the job with this exit status. Returns where there is no launcher.
  virtual void abort(int status) = 0;

 protected:
  const std::shared_ptr<Activity>& shared_activity() const { return activity_; }

 private:
  std::shared_ptr<Activity> activity_;
};

// One rank, alone.
std::unique_ptr<Comm> local_comm();

// All ranks that the launcher started, by the mpi module. Messages are cut into pieces of at most
// `largest_message` bytes. Throws Error(kModuleMissing).
std::unique_ptr<Comm> mpi_comm(i64 largest_message = kLargestMessage);
void finalize_mpi();  // pre: mpi_comm() has returned, and no communicator is left

}  // namespace mckpt::impl
