// CopyWorker: one thread's share of a copy. It takes windows of destinations, reads what they need from the
// sources in blocks that stay in the cache, scatters the blocks into an arena that holds the windows as they
// will be in their files, converts and checks them there, and writes each stretch of a file in one call. Its
// memory is reused from slice to slice: touching fresh memory costs more than copying.
#pragma once

#include <span>
#include <vector>

#include "core/base/int.h"
#include "io/copy/counts.h"

namespace mckpt::impl {

class CopyJob;
class CopySink;
class LostValues;
class ReadSums;
class WrittenSums;
struct CopyTask;
struct Window;

// Page-aligned memory that grows and is never handed back in between.
class Arena {
 public:
  Arena() = default;
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  u8* reserve(i64 bytes);

 private:
  u8* data_ = nullptr;
  i64 bytes_ = 0;
};

class CopyWorker {
 public:
  // Receivers of what the worker sees; null: none.
  struct Listeners {
    ReadSums* read;
    WrittenSums* written;
    LostValues* lost;
  };
  CopyWorker(const CopyJob& job, CopySink& out, const Listeners& listeners)
      : job_(job), out_(out), sums_(listeners.read), written_(listeners.written), lost_(listeners.lost) {}

  // Carries out tasks that fit together, and one that may be of any size.
  void run_small(std::span<const CopyTask> tasks);
  void run_large(const CopyTask& task, i64 budget_bytes, i64 most_bytes);

  const CopyCounts& counts() const { return counts_; }

 private:
  struct Piece;  // a window with its place in the arena
  struct Fetch;  // a move into a piece, with the source bytes that it reads

  void add_pieces(const CopyTask& task, std::span<const Window> windows, std::vector<Piece>& pieces);
  void lay_out(std::vector<Piece>& pieces);
  void fetch(const std::vector<Piece>& pieces);
  void fetch_blocks(std::span<const Fetch> fetches);
  void sum_block(std::span<const Fetch> fetches, i64 begin, std::span<const u8> bytes);
  void finish(std::vector<Piece>& pieces);
  void count_losses(const Piece& piece, const u8* from, const u8* to);
  void sum_frames(std::span<const Piece> pieces, const u8* arena);
  void write(const std::vector<Piece>& pieces);
  void process(std::vector<Piece>& pieces);

  const CopyJob& job_;
  CopySink& out_;
  ReadSums* sums_;
  WrittenSums* written_;
  LostValues* lost_;
  CopyCounts counts_;
  Arena arena_, staging_, block_;
  std::vector<u32> crc_;  // by destination of the large task at hand
};

}  // namespace mckpt::impl
