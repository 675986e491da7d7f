// Compares sums of records with the bytes, in batches of 16,384 records, because a large checkpoint has a
// million of them. Within a batch:
//
//   records    |A|B|------------- C, 100 MiB -------------|
//   pieces     |A|B|-- C0, 32 --|-- C1 --|-- C2 --|C3, 4|       handed out to threads, summed in any order
//   judge      A, B; C = join(C0, C1, C2, C3)                   in the order of the file, by one thread
//
// So one long record keeps all threads busy, and findings come in the same order for any number of threads.
#include "io/verify/checksums.h"

#include <algorithm>
#include <optional>

#include "core/base/error.h"
#include "io/file/crc32.h"
#include "io/file/file.h"
#include "io/file/parallel.h"
#include "io/listing/stretches.h"
#include "io/store/store.h"
#include "io/store/store_files.h"

namespace mckpt::impl {
namespace {

// Records that are checked together.
constexpr std::size_t kBatch = 16384;
// Long records are summed in pieces of this size.
constexpr i64 kPieceBytes = 32 << 20;

// The finding about a record whose bytes have another sum, `crc`.
Finding other_sum(const Store& store, const Checksum& record, u32 crc) {
  return {.code = Code::kBadChecksum,
          .tensor = record.tensor < 0 ? "" : std::string(store.name(record.tensor)),
          .file = std::string(file_label(store, record.file)),
          .message = cat(
              "the CRC-32 of ", record.name.empty() ? "the record" : cat("record ", escaped(record.name)),
              " does not match (checksum): stored ", crc32_text(record.crc32), ", data ", crc32_text(crc)),
          .help = "copy the file again from its source",
          .offset = record.offset};
}

// One call of check_checksums().
class Checker {
 public:
  Checker(const Store& store, const StoreFiles& files, int threads, const std::function<void(i64)>& progress)
      : store_(store),
        files_(files),
        threads_(threads),
        progress_(progress),
        windows_(static_cast<std::size_t>(threads)) {}

  ChecksumResult run() {
    try {
      store_.each_checksum([&](const Checksum& c) {
        batch_.push_back(c);
        if (batch_.size() == kBatch) check_batch();
      });
    } catch (const Error& e) {
      if (e.code() == Code::kInterrupted) throw;
      result_.findings.push_back(to_finding(e));
    }
    check_batch();
    return std::move(result_);
  }

 private:
  // A part of a record, its sum, or the reason why it could not be read.
  struct Piece {
    std::size_t record;
    i64 offset, bytes;
    u32 crc32 = 0;
    std::optional<Finding> failure = std::nullopt;
  };

  void check_batch() {
    pieces_.clear();
    for (std::size_t r = 0; r < batch_.size(); r++)
      for (i64 done = 0; done == 0 || done < batch_[r].bytes; done += kPieceBytes)
        pieces_.push_back({r, done, std::min(kPieceBytes, batch_[r].bytes - done)});
    parallel_for(static_cast<i64>(pieces_.size()), threads_, [&](int worker, i64 p) {
      Piece& piece = pieces_[p];
      try {
        sum(piece, windows_[worker]);
      } catch (const Error& e) {
        if (e.code() == Code::kInterrupted) throw;
        piece.failure = to_finding(e);
      }
    });
    for (std::size_t p = 0; p < pieces_.size();) p = judge(p);
    result_.records += static_cast<i64>(batch_.size());
    batch_.clear();
  }

  void sum(Piece& piece, std::vector<u8>& window) const {
    const Checksum& record = batch_[piece.record];
    std::shared_ptr<const InputFile> file = files_.open(record.file);
    i64 begin = record.offset + piece.offset;
    piece.crc32 = sum_bytes(0, *file, begin, begin + piece.bytes, window, progress_);
  }

  // Joins the pieces of one record, the first of which is `p`, and adds a finding if the record does not fit
  // its sum or cannot be read. Returns the first piece of the next record.
  std::size_t judge(std::size_t p) {
    const Checksum& record = batch_[pieces_[p].record];
    u32 crc = pieces_[p].crc32;
    std::optional<Finding> failure = pieces_[p].failure;
    for (p++; p < pieces_.size() && pieces_[p].offset > 0; p++) {
      crc = crc32_join(crc, pieces_[p].crc32, pieces_[p].bytes);
      if (!failure) failure = pieces_[p].failure;
    }
    if (failure) {
      failure->file = file_label(store_, record.file);
      result_.findings.push_back(std::move(*failure));
    } else if (crc != record.crc32) {
      result_.findings.push_back(other_sum(store_, record, crc));
    }
    return p;
  }

  const Store& store_;
  const StoreFiles& files_;
  int threads_;
  const std::function<void(i64)>& progress_;
  std::vector<Checksum> batch_;
  std::vector<Piece> pieces_;
  std::vector<std::vector<u8>> windows_;
  ChecksumResult result_;
};

}  // namespace

std::optional<Finding> checksum_fault(const Store& store, const StoreFiles& files, const Checksum& record) {
  u32 crc = sum_bytes(0, *files.open(record.file), record.offset, record.offset + record.bytes);
  if (crc == record.crc32) return std::nullopt;
  return other_sum(store, record, crc);
}

ChecksumResult check_checksums(const Store& store, const StoreFiles& files, int threads,
                               const std::function<void(i64 bytes)>& progress) {
  return Checker(store, files, threads, progress).run();
}

}  // namespace mckpt::impl
