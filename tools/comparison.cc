#include "tools/comparison.h"

#include <algorithm>
#include <mutex>
#include <tuple>

#include "io/copy/engine.h"
#include "io/file/parallel.h"
#include "io/verify/checksums.h"
#include "tools/interrupt.h"
#include "tools/render/findings.h"
#include "tools/render/progress.h"

namespace mckpt {
namespace {

bool is_of_coverage(Code code) {
  return code == Code::kChunkHole || code == Code::kChunkOverlap || code == Code::kChunkOutside;
}

i64 bytes_of(const CopyJob& job) {
  i64 bytes = 0;
  for (i64 t = 0; t < job.task_count(); t++) bytes += job.task_bytes(t);
  return bytes;
}

// The sums that a format keeps of whole files beside what it says of each chunk.
class FileSums {
 public:
  explicit FileSums(const Store& store) {
    // Those of a sharded checkpoint stand in the chunks' own headers.
    if (store.format().starts_with("DCP")) return;
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

// The store's file of that path, or -1.
i32 file_of(const Store& store, const std::string& path) {
  for (i32 f = 0; f < static_cast<i32>(store.files().size()); f++)
    if (file_path(store, f) == path) return f;
  return -1;
}

}  // namespace

Comparison::Comparison(const Store& there, const Store& source, int threads, const GlobalFlags& flags)
    : stores_{&there, &source}, threads_(threads), flags_(flags) {
  for (Side side : {kPath, kSource})
    for (const Finding& f : stores_[side]->findings()) {
      if (!is_of_records(f)) continue;
      holes_ |= is_of_coverage(f.code);
      wrong_[side] = true;
      findings_[side].add(f);
    }
}

void Comparison::leave_out(Finding finding, bool of_path) {
  if (of_path) unseen_.insert(finding.tensor);
  others_.push_back(std::move(finding));
}

bool Comparison::run(const Compared& compared, VerifyReport& report) {
  CompareSink sink(compared.there, compared.chunks);
  ChunkJob all = compared.job(compared.chunks);
  std::vector<i32> rest;
  for (const Failure& failure : carry_out(all, sink, "compare", &lost_))
    for (i32 c : judge(compared, failure, all.targets_of(failure.task))) rest.push_back(c);
  if (!rest.empty()) {
    SomeChunks some(compared.chunks, std::move(rest));
    ChunkJob again = compared.job(some);
    for (const Failure& failure : carry_out(again, sink, "compare", &lost_))
      for (i32 c : again.targets_of(failure.task)) tell(failure, compared.name(some.key(c)));
  }
  warn_of_overflow(report);
  std::vector<Finding> against = described(compared, sink, report);
  return add_checks(compared, std::move(against), report);
}

// The tasks that did not go through because of what lies in files.
std::vector<Comparison::Failure> Comparison::carry_out(const CopyJob& job, CopySink& sink, const char* title,
                                                       LostValues* lost) {
  std::vector<Failure> failures;
  std::mutex mutex;
  auto leave_out = [&](i64 task, const Error& e) {
    bool of_files = e.code() >= Code::kNotFound && e.code() <= Code::kMixedSaves;
    if (!of_files && !(holes_ && e.code() == Code::kNotTiled)) return false;
    std::lock_guard lock(mutex);
    failures.push_back({task, e});
    return true;
  };
  Progress progress(flags_, title, bytes_of(job));
  run_copy(job, sink,
           {.threads = threads_,
            .stop = stop_flag(),
            .written_bytes = progress.counter(),
            .lost = lost,
            .leave_out = leave_out});
  std::ranges::sort(failures, {}, &Failure::task);
  return failures;
}

// Tells which records keep a task from being carried out. Returns the chunks of it that can be compared
// without them.
std::vector<i32> Comparison::judge(const Compared& compared, const Failure& failure,
                                   std::span<const i32> chunks) {
  std::vector<i32> sound;
  std::set<i32> keys;
  for (i32 c : chunks) {
    auto [key, tensor, chunk] = compared.chunks.entry(c);
    keys.insert(key);
    if (reads(kPath, compared.there, tensor, chunk))
      sound.push_back(c);
    else
      unseen_.insert(compared.name(key));
  }
  bool source_reads = true;
  for (i32 key : keys)
    for (i64 tensor : compared.made_of(key))
      for (i64 c = 0; c < compared.source.chunk_count(tensor); c++)
        source_reads &= reads(kSource, compared.source, tensor, c);
  if (source_reads && sound.size() < chunks.size()) return sound;
  for (i32 key : keys)
    if (source_reads)
      tell(failure, compared.name(key));
    else
      unseen_.insert(compared.name(key));
  return {};
}

// Whether the header of a chunk's record can be read; where not, it is told once.
bool Comparison::reads(Side side, const Store& store, i64 tensor, i64 chunk) {
  auto [at, fresh] = looked_.try_emplace({side, tensor, chunk}, true);
  if (!fresh) return at->second;
  try {
    store.resolve(tensor, chunk);
  } catch (Error& e) {
    e.default_tensor(store.name(tensor));
    Finding finding = to_finding(e);
    Chunk c = store.chunk(tensor, chunk);
    finding.file = file_label(store, c.file);
    finding.rank = c.rank;
    findings_[side].add(std::move(finding));
    wrong_[side] = true;
    at->second = false;
  }
  return at->second;
}

// What no header tells: data that cannot be read.
void Comparison::tell(const Failure& failure, const std::string& tensor) {
  if (!unseen_.insert(tensor).second) return;
  Finding finding = to_finding(failure.error);
  if (finding.tensor.empty()) finding.tensor = tensor;
  for (Side side : {kPath, kSource}) {
    i32 file = file_of(*stores_[side], finding.file);
    if (file < 0) continue;
    finding.file = file_label(*stores_[side], file);
    findings_[side].add(std::move(finding));
    wrong_[side] = true;
    return;
  }
  others_.push_back(std::move(finding));
}

// Tensors that differ are gone through once more, they alone: a comparison that finds nothing costs nothing
// more.
std::map<i32, ItemTally::Count> Comparison::counted_items(const Compared& compared,
                                                          const std::set<i32>& keys) {
  std::vector<i32> chunks;
  for (i32 c = 0; c < static_cast<i32>(compared.chunks.size()); c++)
    if (keys.contains(compared.chunks.key(c))) chunks.push_back(c);
  SomeChunks some(compared.chunks, std::move(chunks));
  ChunkJob job = compared.job(some);
  ItemTally tally(compared.there, some);
  carry_out(job, tally, "count", nullptr);  // what fails was reported when it was compared
  return tally.counts();
}

std::vector<Finding> Comparison::described(const Compared& compared, const CompareSink& sink,
                                           VerifyReport& report) {
  std::vector<CompareSink::Difference> differences = sink.differences();
  if (differences.empty()) return {};
  Findings findings;
  std::set<i32> listed;
  for (const CompareSink::Difference& d : differences)
    if (std::ssize(listed) < Findings::kMostOfOneCode) listed.insert(d.key);
  std::map<i32, ItemTally::Count> counts = counted_items(compared, listed);
  for (const CompareSink::Difference& d : differences) {
    Finding finding{.code = Code::kUnequal,
                    .tensor = compared.name(d.key),
                    .file = std::string(file_label(*stores_[kPath], d.file)),
                    .message = cat("differs from item ", d.item, " of what this file holds of it on"),
                    .offset = d.offset};
    if (auto at = counts.find(d.key); at != counts.end()) {
      const ItemTally::Count& c = at->second;
      finding.file = file_label(*stores_[kPath], c.file);
      finding.offset = c.offset;
      finding.message = to_string(c);
      report.differences.push_back(
          {finding.tensor, finding.file, dims_to_string(c.index), c.expected, c.found, c.items, c.largest});
    }
    findings.add(std::move(finding));
  }
  check_sums(compared, listed);
  return findings.take();
}

// Which records of tensors that differ are not what was written.
void Comparison::check_sums(const Compared& compared, const std::set<i32>& keys) {
  struct Record {
    Side side;
    const Store* store;
    i64 tensor, chunk;
  };
  std::vector<Record> records;
  std::set<std::pair<Side, i64>> seen;
  for (i32 c = 0; c < static_cast<i32>(compared.chunks.size()); c++) {
    auto [key, tensor, chunk] = compared.chunks.entry(c);
    if (!keys.contains(key)) continue;
    records.push_back({kPath, &compared.there, tensor, chunk});
    for (i64 t : compared.made_of(key))
      for (i64 i = 0; i < compared.source.chunk_count(t) && !seen.contains({kSource, t}); i++)
        records.push_back({kSource, &compared.source, t, i});
    for (i64 t : compared.made_of(key)) seen.insert({kSource, t});
  }
  StoreFiles files[] = {StoreFiles(compared.there), StoreFiles(compared.source)};
  FileSums sums[] = {FileSums(*stores_[kPath]), FileSums(*stores_[kSource])};
  PlacedFindings found[2];
  std::mutex mutex;
  std::set<std::tuple<Side, i32, i64>> judged;  // tensors may share a record
  parallel_for(std::ssize(records), threads_, [&](int, i64 r) {
    const Record& record = records[static_cast<std::size_t>(r)];
    check_stop();
    try {
      ChunkData data = record.store->resolve(record.tensor, record.chunk);
      std::optional<Checksum> sum =
          data.checksum ? data.checksum : sums[record.side].of(data.file, data.offset);
      if (!sum) return;
      sum->tensor = -1;  // may count those of another store
      {
        std::lock_guard lock(mutex);
        if (!judged.insert({record.side, sum->file, sum->offset}).second) return;
      }
      std::optional<Finding> bad = checksum_fault(*record.store, files[record.side], *sum);
      if (!bad) return;
      bad->tensor = record.store->name(record.tensor);
      found[record.side].add(r, std::move(*bad));
    } catch (const Error& e) {
      if (e.code() == Code::kInterrupted) throw;
      // What cannot be read was told when it was compared.
    }
  });
  for (Side side : {kPath, kSource})
    for (Finding& f : found[side].take()) {
      findings_[side].add(std::move(f));
      wrong_[side] = true;
    }
}

// What is equal to what converting gives may have lost values all the same, where that was wanted. They are
// not counted: what is compared once more beside damage is cast once more.
void Comparison::warn_of_overflow(VerifyReport& report) const {
  std::vector<Finding> found;
  for (const LostValues::Tensor& t : lost_.tensors())
    found.push_back({.code = Code::kCastOverflow,
                     .tensor = t.name,
                     .message = "finite values of the source are infinite in the type that is stored",
                     .warning = true});
  i64 count = std::ssize(found);
  if (count > 0) report.add({"overflow", Check::Status::kWarn, count, "tensors"}, std::move(found));
}

bool Comparison::add_checks(const Compared& compared, std::vector<Finding> against, VerifyReport& report) {
  against.insert(against.begin(), others_.begin(), others_.end());
  bool equal = against.empty() && unseen_.empty() && !wrong_[kPath] && !wrong_[kSource];
  for (Side side : {kPath, kSource})
    if (wrong_[side])
      report.add({side == kPath ? "path" : "source", Check::Status::kFail, std::ssize(stores_[side]->files()),
                  "files"},
                 findings_[side].take());
  i64 unseen = std::ssize(unseen_);
  Check check{"against",
              equal ? Check::Status::kPass : Check::Status::kFail,
              compared.tensors - unseen,
              "tensors",
              unseen,
              "could not be compared"};
  if (!dropped_.empty()) check.note = cat("of SRC, conversions drop ", listed(dropped_));
  report.add(std::move(check), std::move(against));
  return equal;
}

}  // namespace mckpt
