// Runs the checks of one store. Findings of the store's opener are assigned to checks by their codes
// (check_of_code), and the checks do not repeat them.
//
// The file of one rank is checked as the tensors that the rank had. Whether the parts of all ranks tile a
// tensor is not seen in it, and the line of coverage says of how many it has a part alone.
//
// A tensor with a problem in its chunks is not read for its values; its items are counted as unseen. All
// other tensors are read once for values and experts together: cut into units of 16 Mi items for the threads,
// except experts, which are summed from end to end. Results of units are merged in their order, so the report
// is the same for any number of threads.
#include "io/verify/verify.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "core/items/shape.h"
#include "io/dcp/keys/buckets.h"
#include "io/file/parallel.h"
#include "io/store/cover.h"
#include "io/store/findings.h"
#include "io/store/lone_shard.h"
#include "io/store/missing_file.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
#include "io/values/element.h"
#include "io/values/finite.h"
#include "io/values/tensor_reader.h"
#include "io/verify/checksums.h"
#include "io/verify/expert_twins.h"
#include "io/verify/first_failures.h"
#include "io/verify/implausible.h"
#include "io/verify/lost_chunks.h"
#include "io/verify/open_ranges.h"
#include "io/verify/which_check.h"

namespace mckpt::impl {
namespace {

using namespace verify_check;

constexpr i64 kUnitItems = 16 << 20;

// One call of verify_store(): each check_...() fills in its line of the report.
class Verifier {
 public:
  // `parts`: of a lone shard, the tensors of which it has a part.
  Verifier(const Store& store, int threads, const std::function<void(i64)>& progress,
           std::optional<i64> parts = {})
      : store_(store),
        files_(store),
        threads_(threads),
        progress_(progress),
        parts_(parts),
        own_(store.check(threads)) {
    for (auto [name, unit] : {std::pair{"files", "files"},
                              {"format", "files"},
                              {"index", "tensors"},
                              {"coverage", "tensors"},
                              {"items", "chunks"},
                              {"crc32", "records"},
                              {"values", "values"},
                              {"experts", "tensors"},
                              {"parts", "tensors"}})
      report_.checks.push_back({name, Check::Status::kNone, 0, unit});
    at(kFiles).unseen_is = "missing";
  }

  VerifyReport run() {
    for (const Finding& f : store_.findings())
      if (!is_worse_in_check(f)) add(check_of_code(f.code), judged(f));
    check_files();
    check_format();
    check_coverage();
    check_items();
    check_crc();
    check_values();
    check_parts();
    for (Check& c : report_.checks)
      if (c.count > 0) c.status = std::max(c.status, Check::Status::kPass);
    return std::move(report_);
  }

 private:
  Check& at(std::size_t which) { return report_.checks[which]; }

  // Adds a finding to a check, whose status becomes at least kWarn or kFail.
  void add(Which which, Finding finding) {
    at(which).status = std::max(at(which).status, status_of({&finding, 1}));
    report_.findings.push_back(std::move(finding));
    report_.check_of.push_back(which);
  }

  // A tensor of a kind that no conversion takes, such as a sparse one, is not damage: its bytes are checked
  // with their sums, and only its values are not looked at.
  static Finding judged(Finding f) {
    f.warning |= f.code == Code::kUnsupportedTensor;
    return f;
  }

  // Whether the format's own check has the finding as well, as a problem.
  bool is_worse_in_check(const Finding& f) const {
    auto is_it = [&](const Finding& o) { return !o.warning && o.file == f.file && o.message == f.message; };
    return f.warning && own_ && std::ranges::any_of(*own_, is_it);
  }
  void check_files();
  void check_format();
  void check_coverage();
  void check_items();
  void check_crc();
  void check_values();
  void check_parts();

  // Items of one tensor, which one thread reads.
  struct Unit {
    i64 tensor, begin, end;
  };
  using Readers = std::vector<std::unique_ptr<TensorReader>>;  // by thread
  std::vector<Unit> units(const ExpertTwins& twins) const;
  std::vector<NonFinite> scan(std::span<const Unit> units, ExpertTwins& twins, Readers& readers);
  void report_values(std::span<const Unit> units, std::span<const NonFinite> found, TensorReader& reader);
  void add_non_finite(i64 tensor, const NonFinite& found);

  const Store& store_;
  StoreFiles files_;
  int threads_;
  const std::function<void(i64)>& progress_;
  const std::optional<i64> parts_;
  VerifyReport report_;
  std::optional<std::vector<Finding>> own_;  // of Store::check()
  std::unordered_map<i64, std::vector<std::pair<i64, i64>>>
      paddings_;                        // by tensor: what nobody wrote on purpose
  std::unordered_set<i64> unreadable_;  // tensors that cannot be read completely, as a finding says
};

// Opens every file, which compares its size. A missing file that the opener has a finding about is not
// reported again; one without a file counts those that are not listed.
void Verifier::check_files() {
  NameSet<std::string_view> files_with_findings;
  bool counted = false;
  for (const Finding& f : store_.findings()) {
    files_with_findings.insert(f.file);
    counted |= f.code == Code::kShardMissing && f.file.empty();
  }
  for (std::size_t i = 0; i < store_.files().size(); i++) {
    const StoreFile& file = store_.files()[i];
    (file.bytes < 0 ? at(kFiles).unseen : at(kFiles).count)++;
    try {
      if (file.bytes >= 0) files_.open(static_cast<i32>(i));
      if (file.bytes < 0 && !counted && !files_with_findings.contains(file.path)) throw missing_file_error();
    } catch (const Error& e) {
      Finding finding = to_finding(e);
      finding.file = file_label(store_, static_cast<i32>(i));
      add(kFiles, std::move(finding));
    }
  }
}

// Openers check the headers of all files; here files are only counted. Codes of no other check belong to
// "format".
void Verifier::check_format() {
  at(kFormat).count = at(kFiles).count;
  bool indexed = std::any_of(store_.facts().begin(), store_.facts().end(),
                             [](const auto& f) { return f.first == "index"; });
  if (indexed) at(kIndex).count = store_.tensor_count();
}

// Checks that the chunks of each tensor tile it. A tensor that the opener has a problem with is not checked
// again, and its data are not read.
void Verifier::check_coverage() {
  NameSet<std::string_view> refused;  // openers of sharded formats check the cover themselves
  for (const Finding& f : store_.findings())
    if (!f.warning) refused.insert(f.tensor);
  for (i64 t = 0; t < store_.tensor_count(); t++) {
    at(kCoverage).count++;
    if (refused.contains(store_.name(t))) {
      unreadable_.insert(t);
      continue;
    }
    for (const BoxFault& fault : chunk_faults(store_, t)) {
      unreadable_.insert(t);
      if (parts_ && cover_code(fault.kind) == Code::kChunkHole) continue;  // other files have the rest
      add(kCoverage, {.code = cover_code(fault.kind),
                      .tensor = std::string(store_.name(t)),
                      .message = to_string(fault)});
    }
  }
  if (parts_.value_or(0) == 0) return;
  at(kCoverage).count -= *parts_, at(kCoverage).unseen = *parts_;
  at(kCoverage).unseen_is = "with a part alone";
  add(kCoverage,
      {.code = Code::kChunkHole,
       .message = cat(counted(*parts_, "tensor"), *parts_ == 1 ? " has" : " have",
                      " a part alone here: that the files of all ranks make the whole is not seen in one"),
       .help = kNameAllRanks});
}

// Compares each chunk's own header with the table.
void Verifier::check_items() {
  std::atomic<i64> chunks = 0;
  std::vector<char> bad(static_cast<std::size_t>(store_.tensor_count()));
  PlacedFindings broken;
  LostChunks lost(store_);
  parallel_for(store_.tensor_count(), threads_, [&](int, i64 t) {
    for (i64 i = 0; i < store_.chunk_count(t); i++) {
      chunks++;
      Chunk chunk = store_.chunk(t, i);
      try {
        ChunkData data = store_.resolve(t, i);
        if (data.dtype != store_.dtype(t))
          throw Error(Code::kBadExtent, "a chunk has another data type than its tensor")
              .expected(dtype_name(store_.dtype(t)))
              .found(dtype_name(data.dtype));
      } catch (Error& e) {
        e.default_tensor(store_.name(t));
        Finding finding = to_finding(e);
        finding.file = file_label(store_, chunk.file);
        finding.rank = chunk.rank;
        e.code() == Code::kNotFound ? lost.add(chunk, t, std::move(finding))
                                    : broken.add(t, judged(std::move(finding)));
        bad[t] = 1;
      }
    }
  });
  for (Finding& f : lost.take()) add(kFiles, std::move(f));
  for (Finding& f : broken.take()) add(kItems, std::move(f));
  for (std::size_t t = 0; t < bad.size(); t++)
    if (bad[t]) unreadable_.insert(static_cast<i64>(t));
  at(kItems).count = chunks;
}

// The checks of the format itself (Store::check).
void Verifier::check_parts() {
  if (!own_) return;
  at(kParts).count = store_.tensor_count();
  for (Finding& f : *own_) add(check_of_code(f.code), std::move(f));
}

// Compares all records with the sums that the format stores (io/verify/checksums.h).
void Verifier::check_crc() {
  ChecksumResult result = check_checksums(store_, files_, threads_, progress_);
  at(kCrc).count = result.records;
  if (result.records == 0) at(kCrc).note = "no checksums are stored";
  for (Finding& f : result.findings) add(kCrc, std::move(f));
}

// The stretches of all readable tensors that threads share. Experts are summed from end to end; other tensors
// are cut, so that threads share a large one.
std::vector<Verifier::Unit> Verifier::units(const ExpertTwins& twins) const {
  std::vector<Unit> units;
  for (i64 t = 0; t < store_.tensor_count(); t++) {
    if (unreadable_.contains(t)) continue;
    i64 items = store_.shape(t).items();
    i64 step = twins.experts_in(t) > 0 || dtype_info(store_.dtype(t)).bits < 8 ? items : kUnitItems;
    for (i64 begin = 0; begin < items; begin += step)
      units.push_back({t, begin, std::min(items, begin + step)});
  }
  return units;
}

// Reads all units with all threads. Tensors that cannot be read become findings, and are unreadable from then
// on.
std::vector<NonFinite> Verifier::scan(std::span<const Unit> units, ExpertTwins& twins, Readers& readers) {
  std::vector<NonFinite> found(units.size());
  FirstFailures failures;
  parallel_for(std::ssize(units), threads_, [&](int worker, i64 u) {
    const Unit& unit = units[u];
    if (failures.has_one_before(unit.tensor, u)) return;
    DType dtype = store_.dtype(unit.tensor);
    ExpertTwins::Sums sums(twins, unit.tensor);
    bool expert = twins.experts_in(unit.tensor) > 0;
    const auto padding = paddings_.find(unit.tensor);
    const std::span<const std::pair<i64, i64>> left_out =
        padding == paddings_.end() ? std::span<const std::pair<i64, i64>>() : padding->second;
    try {
      readers[worker]->read(unit.tensor, unit.begin, unit.end, [&](std::span<const u8> bytes, i64 at) {
        scan_outside(left_out, dtype, bytes, at, found[u]);
        if (expert) sums.take(bytes);
        progress_(static_cast<i64>(bytes.size()));
      });
      if (expert) twins.add(sums);
    } catch (const Error& e) {
      if (e.code() == Code::kInterrupted) throw;
      failures.add(unit.tensor, u, to_finding(e));
    }
  });
  for (auto& [tensor, failure] : failures.all()) {
    unreadable_.insert(tensor);
    add(kItems, std::move(failure.second));
  }
  return found;
}

// Adds up what was found in the units of each tensor.
void Verifier::report_values(std::span<const Unit> units, std::span<const NonFinite> found,
                             TensorReader& reader) {
  for (i64 t : unreadable_) at(kValues).unseen += store_.shape(t).items();
  if (at(kValues).unseen > 0) at(kValues).status = Check::Status::kWarn;
  Implausible implausible(store_);
  for (std::size_t u = 0; u < units.size();) {
    i64 tensor = units[u].tensor;
    NonFinite all;
    for (; u < units.size() && units[u].tensor == tensor; u++) all.merge(found[u]);
    if (unreadable_.contains(tensor)) continue;
    at(kValues).count += store_.shape(tensor).items();
    if (all.count() > 0 && !is_open_range(store_, tensor, all, reader)) add_non_finite(tensor, all);
    implausible.add(tensor, all);
  }
  for (Finding& f : implausible.findings(reader)) add(kValues, std::move(f));
}

// Looks for NaN, infinities and implausible values, and for experts with equal bytes, in one read of all
// data.
void Verifier::check_values() {
  ExpertTwins twins(store_);
  Readers readers;
  for (int i = 0; i < threads_; i++) readers.push_back(std::make_unique<TensorReader>(store_, files_));
  for (i64 t = 0; t < store_.tensor_count(); t++)
    if (auto padding = bucket_padding(store_, t); !padding.empty()) paddings_.emplace(t, std::move(padding));
  const std::vector<Unit> all = units(twins);
  const std::vector<NonFinite> found = scan(all, twins, readers);
  report_values(all, found, *readers[0]);
  at(kExperts).count = twins.compared();
  for (Finding& f : twins.findings(*readers[0])) add(kExperts, std::move(f));
}

// Reports the first NaN and the first infinity of a tensor by index, and the file and rank of the chunk.
void Verifier::add_non_finite(i64 tensor, const NonFinite& found) {
  std::span<const i64> dims = store_.dims(tensor);
  i64 per_element = element_form(store_.dtype(tensor)).per_element;
  Finding finding{.code = Code::kNonFinite, .tensor = std::string(store_.name(tensor))};
  for (auto [count, first, what] : {std::tuple{found.nans, found.first_nan, "NaN"},
                                    {found.infinities, found.first_infinity, "infinity"}}) {
    if (count == 0) continue;
    std::vector<i64> index = item_index(first / per_element, dims);
    finding.message +=
        cat(finding.message.empty() ? "" : ", ", count, " x ", what, ", first at ", dims_to_string(index));
    for (i64 i = 0; finding.file.empty() && i < store_.chunk_count(tensor); i++) {
      Chunk c = store_.chunk(tensor, i);
      bool inside = true;
      for (std::size_t d = 0; d < dims.size(); d++)
        inside &= index[d] >= c.offsets[d] && index[d] - c.offsets[d] < c.sizes[d];
      if (!inside) continue;
      finding.file = file_label(store_, c.file);
      finding.rank = c.rank;
    }
  }
  add(kValues, std::move(finding));
}

}  // namespace

VerifyReport verify_store(const Store& store, int threads, const std::function<void(i64 bytes)>& progress) {
  if (!is_lone_shard(store) || store.files().size() != 1) return Verifier(store, threads, progress).run();
  const std::unique_ptr<Store> local = local_view(store);
  i64 parts = 0;
  for (i64 t = 0; t < store.tensor_count(); t++)
    parts += !std::ranges::equal(local->dims(t), store.dims(t)) || !chunk_faults(*local, t, 1).empty();
  return Verifier(*local, threads, progress, parts).run();
}

i64 verify_bytes(const Store& store) {
  i64 bytes = 0;
  store.each_checksum([&](const Checksum& c) { bytes += c.bytes; });
  for (i64 t = 0; t < store.tensor_count(); t++) bytes += TensorReader::tensor_bytes(store, t);
  return bytes;
}

}  // namespace mckpt::impl
