// Damage of either side of a comparison: headers that cannot be read, and data that do not have their
// checksum.
#include "convert/compare/differences/compared_sides.h"

#include <mutex>
#include <set>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "io/copy/observed_sink.h"
#include "io/dcp/dcp.h"
#include "io/file/parallel.h"
#include "io/store/soundness.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
#include "io/verify/checksums.h"
#include "io/verify/verify.h"

namespace mckpt::impl {
namespace {

bool is_of_coverage(Code code) {
  return code == Code::kChunkHole || code == Code::kChunkOverlap || code == Code::kChunkOutside;
}

// The number of the store's file with that path, or -1.
i32 file_of(const Store& store, const std::string& path) {
  for (i32 f = 0; f < std::ssize(store.files()); f++)
    if (file_path(store, f) == path) return f;
  return -1;
}

// The checksums that a format stores apart from the chunks' own headers: of zip entries in a .pt file, or in
// a manifest. Found by the file and an offset within the record.
class RecordSums {
 public:
  explicit RecordSums(const Store& store) {
    if (dcp_dialect(store)) return;  // its checksums are in the chunks' own headers
    store.each_checksum([&](const Checksum& sum) { sums_[{sum.file, sum.offset}] = sum; });
  }
  std::optional<Checksum> of(i32 file, i64 offset) const {
    auto at = sums_.upper_bound({file, offset});
    if (at == sums_.begin()) return std::nullopt;
    const Checksum& sum = (--at)->second;
    bool inside = sum.file == file && offset < sum.offset + sum.bytes;
    return inside ? std::optional(sum) : std::nullopt;
  }

 private:
  std::map<std::pair<i32, i64>, Checksum> sums_;
};

// Compares records with their checksums, each record once, because tensors may share one. Thread-safe.
class RecordJudge {
 public:
  RecordJudge(const Store& tested, const Store& source)
      : files_{StoreFiles(tested), StoreFiles(source)}, sums_{RecordSums(tested), RecordSums(source)} {}

  std::optional<Finding> fault(const ComparedSides::Record& r) {
    ChunkData data = r.store->resolve(r.tensor, r.chunk);
    std::optional<Checksum> sum = data.checksum ? data.checksum : sums_[r.side].of(data.file, data.offset);
    if (!sum) return std::nullopt;
    sum->tensor = -1;  // it may be a number of another store than the record's
    {
      std::lock_guard lock(mutex_);
      if (!judged_.insert({r.side, sum->file, sum->offset}).second) return std::nullopt;
    }
    std::optional<Finding> fault = checksum_fault(*r.store, files_[r.side], *sum);
    if (fault) fault->tensor = r.store->name(r.tensor);
    return fault;
  }

 private:
  StoreFiles files_[2];
  RecordSums sums_[2];
  std::mutex mutex_;
  std::set<std::tuple<ComparedSides::Side, i32, i64>> judged_;
};

}  // namespace

ComparedSides::ComparedSides(const Store& tested, const Store& source) : stores_{&tested, &source} {
  for (Side side : {kTested, kSource})
    for (const Finding& f : stores_[side]->findings()) {
      if (!is_of_records(f)) continue;
      holes_ |= is_of_coverage(f.code);
      if (is_of_coverage(f.code)) uncovered_[side].insert(f.tensor);
      add(side, f);
    }
}

bool ComparedSides::covers(Side side, const Store& store, i64 tensor) const {
  if (uncovered_[side].empty()) return true;
  if (&store == stores_[side] && uncovered_[side].contains(store.name(tensor))) return false;
  i64 stored = 0;
  for (i64 c = 0; c < store.chunk_count(tensor); c++)
    if (const Chunk chunk = store.chunk(tensor, c); !chunk.replica) stored += checked_items(chunk.sizes);
  return stored >= store.shape(tensor).items();
}

void ComparedSides::add(Side side, Finding finding) {
  wrong_[side] = true;
  findings_[side].add(std::move(finding));
}

bool ComparedSides::reads(const Record& r) {
  auto [at, fresh] = looked_.try_emplace({r.side, r.tensor, r.chunk}, true);
  if (!fresh) return at->second;
  try {
    r.store->resolve(r.tensor, r.chunk);
  } catch (Error& e) {
    e.default_tensor(r.store->name(r.tensor));
    Finding finding = to_finding(e);
    Chunk c = r.store->chunk(r.tensor, r.chunk);
    finding.file = file_label(*r.store, c.file);
    finding.rank = c.rank;
    add(r.side, std::move(finding));
    at->second = false;
  }
  return at->second;
}

bool ComparedSides::add_by_file(Finding& finding) {
  for (Side side : {kTested, kSource}) {
    i32 file = file_of(*stores_[side], finding.file);
    if (file < 0) continue;
    finding.file = file_label(*stores_[side], file);
    add(side, std::move(finding));
    return true;
  }
  return false;
}

void ComparedSides::check_sums(const std::vector<Record>& records, int threads, Observer& observer) {
  RecordJudge judge(*stores_[kTested], *stores_[kSource]);
  PlacedFindings found[2];
  parallel_for(std::ssize(records), threads, [&](int, i64 i) {
    check_stop(observer);
    const Record& record = records[i];
    try {
      if (std::optional<Finding> fault = judge.fault(record)) found[record.side].add(i, std::move(*fault));
    } catch (const Error& e) {
      if (e.code() == Code::kInterrupted) throw;
      // A record that cannot be read was reported when it was compared.
    }
  });
  for (Side side : {kTested, kSource})
    for (Finding& f : found[side].take()) add(side, std::move(f));
}

void ComparedSides::add_checks(VerifyReport& report) {
  for (Side side : {kTested, kSource})
    if (wrong_[side])
      report.add({side == kTested ? "path" : "source", Check::Status::kFail,
                  std::ssize(stores_[side]->files()), "files"},
                 findings_[side].take());
}

}  // namespace mckpt::impl
