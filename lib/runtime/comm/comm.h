// Comm: ranks that work together. A rank learns its number and how many ranks there are, and has the few
// collectives that planning needs. Every rank of a Comm calls the same collectives in the same order; a
// failure throws Error(kRanksFailed) with the library's own words.
//
//   4 ranks, all_gather_v("a", "", "bc", "d")   -->   every rank: bytes "abcd", begins 0 1 1 3 4
//
// Collectives are called by one thread at a time. They wait for all ranks, so a rank that throws before a
// collective must end the job (Job::end) and not leave the others waiting.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "core/base/int.h"
#include "runtime/comm/activity.h"

namespace mckpt::impl {

enum class Reduce { kSum, kMax };

// The largest message. Larger ones are cut into pieces, because MPI counts bytes in 32 bits.
inline constexpr i64 kLargestMessage = i64{1} << 30;

// The contributions of all ranks, one after the other in rank order: what all_gather_v() returns.
struct Gathered {
  std::vector<std::byte> bytes;
  std::vector<i64> begins;  // one more than there are ranks

  std::span<const std::byte> of(int rank) const {
    std::size_t r = static_cast<std::size_t>(rank);
    return std::span(bytes).subspan(static_cast<std::size_t>(begins[r]),
                                    static_cast<std::size_t>(begins[r + 1] - begins[r]));
  }
};

// The interface. There are two: a process alone (local_comm) and the ranks of a launcher (mpi_comm). Tests
// add their own.
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
  // pre: `mine` has the same size in every rank, and `all` has that size times the number of ranks. `mine`
  // may be the rank's own place in `all`, either in every rank or in none.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  virtual Gathered all_gather_v(std::span<const std::byte> mine) = 0;
  // Every rank sends a part to every rank (MPI_Alltoallv): `send` has the parts one after the other,
  // send_bytes[r] bytes for rank r, and `receive` gets receive_bytes[r] bytes from rank r. pre: both are at
  // most kLargestMessage bytes, and rank a sends rank b as many bytes as rank b expects from rank a.
  virtual void exchange(std::span<const std::byte> send, std::span<const i64> send_bytes,
                        std::span<std::byte> receive, std::span<const i64> receive_bytes) = 0;
  // pre: every rank passes equally many numbers. Every rank gets the results in place of its numbers.
  virtual void all_reduce(std::span<i64> numbers, Reduce op) = 0;
  // Ranks of one colour form a new Comm, ordered by key and then by rank. Collective over all ranks, also
  // those with a negative colour, which get null.
  virtual std::unique_ptr<Comm> split(int color, int key) = 0;
  // Lets the launcher end every rank of the job with this exit status. Returns if there is no launcher.
  virtual void abort(int status) = 0;

 protected:
  const std::shared_ptr<Activity>& shared_activity() const { return activity_; }

 private:
  std::shared_ptr<Activity> activity_;
};

// A Comm of one rank, for which no collective waits.
std::unique_ptr<Comm> local_comm();

// All ranks that the launcher started, by the mpi module. Messages are cut into pieces of at most
// `largest_message` bytes. Throws Error(kModuleMissing).
std::unique_ptr<Comm> mpi_comm(i64 largest_message = kLargestMessage);
void finalize_mpi();  // pre: mpi_comm() has returned, and no communicator is left

}  // namespace mckpt::impl
