// CopyWorker: what one thread does with the tasks of a copy. It carries out a set of windows of destinations
// at a time:
//
//   source files   ====|====|====|===        read in blocks of about 1 MiB, which stay in the cache
//                       |  apply_move        each block is scattered at once to where its items belong
//   staging        [items before their cast]               only if the task casts
//                       |  cast_items
//   arena          [head|items|tail][head|items|tail]      the windows as they will be in their files
//                       |  one write for each stretch
//   sink           ========================
//
// Sums of what is read and written, and losses of casts, are taken while the bytes are in the cache. The
// memory is reused from slice to slice: the first touch of fresh memory costs more than copying.
#pragma once

#include <span>
#include <vector>

#include "core/base/int.h"
#include "io/copy/counts.h"
#include "io/copy/slices.h"

namespace mckpt::impl {

class CopyJob;
class CopySink;
class LostValues;
class ReadSums;
class WrittenSums;
struct CopyTask;

// Page-aligned memory that grows and is given back only at the end. Growing loses what it contains. Throws
// kOutOfMemory.
class Arena {
 public:
  Arena() = default;
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  u8* reserve(i64 bytes);  // at least so many bytes; reserve(0): the memory as it is

 private:
  u8* data_ = nullptr;
  i64 bytes_ = 0;
};

// Belongs to one thread. Job, sink and listeners are shared by all threads and outlive it.
class CopyWorker {
 public:
  // Receivers of what the worker sees; null: none.
  struct Listeners {
    ReadSums* read;
    WrittenSums* written;
    LostValues* lost;
    bool task_sums = false;  // run_small() and run_slice() give the sums of what they write
  };
  CopyWorker(const CopyJob& job, CopySink& out, const Listeners& listeners)
      : job_(job),
        out_(out),
        sums_(listeners.read),
        written_(listeners.written),
        lost_(listeners.lost),
        task_sums_(listeners.task_sums) {}

  // Carries out tasks whose destinations fit into memory together. All functions throw what the job, the
  // sources and the sink throw. `sums` receives a sum for each task (io/copy/task_log.h), if they are asked
  // for.
  void run_small(std::span<const CopyTask> tasks, std::span<u32> sums);
  // Carries out a slice of a task, without tails. `sums` receives the CRC-32 of the data of each window.
  void run_slice(const CopyTask& task, const Slice& slice, std::span<u32> sums);
  // Ends a task whose slices are all carried out: its tails. `sums`: the CRC-32 of the data of each
  // destination.
  void end_slices(const CopyTask& task, std::span<const u32> sums);

  // Carries out a part of one destination of a task, without sums of the destination.
  void run_window(const CopyTask& task, const Window& window);

  const CopyCounts& counts() const { return counts_; }

 private:
  struct Piece;    // a window with its place in the arena
  struct Fetch;    // a move into a piece, with the source bytes that it reads
  struct Summed {  // a block that was read to its place, whose sum is known
    const u8* data;
    i64 bytes;
    u32 crc32;
  };

  void add_pieces(const CopyTask& task, std::span<const Window> windows, std::vector<Piece>& pieces);
  void lay_out(std::vector<Piece>& pieces);
  void fetch(const std::vector<Piece>& pieces);
  void fetch_stretches(std::vector<Fetch>& fetches);
  void fetch_blocks(std::span<const Fetch> fetches);
  void sum_block(std::span<const Fetch> fetches, i64 begin, std::span<const u8> bytes, bool in_place);
  void finish(std::vector<Piece>& pieces);
  u32 sum(u32 before, std::span<const u8> bytes) const;
  void count_losses(const Piece& piece, const u8* from, const u8* to);
  void sum_frames(std::span<const Piece> pieces, const u8* arena);
  void write(const std::vector<Piece>& pieces);
  void process(std::vector<Piece>& pieces);

  const CopyJob& job_;
  CopySink& out_;
  ReadSums* sums_;
  WrittenSums* written_;
  LostValues* lost_;
  bool task_sums_;
  CopyCounts counts_;
  Arena arena_, staging_, block_;
  std::vector<Summed> summed_;  // by place
};

}  // namespace mckpt::impl
