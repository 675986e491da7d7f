// The four passes of a comparison, and the findings that they produce. Errors of three kinds meet here and
// are kept apart: damage of a record (a finding about one side), a tensor that could not be compared (the
// comparison is not "equal"), and a difference.
#include "convert/compare/differences/comparison.h"

#include <algorithm>
#include <iterator>
#include <mutex>

#include "convert/compare/differences/common_type.h"
#include "convert/compare/differences/compare_sink.h"
#include "convert/compare/differences/wide_chunks.h"
#include "convert/jobs/chunk_job.h"
#include "convert/keys/stored_chunks.h"
#include "core/base/error.h"
#include "core/items/item_cast.h"
#include "core/items/shape.h"
#include "io/copy/engine.h"
#include "io/copy/job.h"
#include "io/copy/observed_sink.h"
#include "io/store/store.h"
#include "io/store/unrounded.h"
#include "io/verify/verify.h"

namespace mckpt::impl {
namespace {

i64 bytes_of(const CopyJob& job) {
  i64 bytes = 0;
  for (i64 t = 0; t < job.task_count(); t++) bytes += job.task_bytes(t);
  return bytes;
}

bool is_of_files(Code code) { return code >= Code::kNotFound && code <= Code::kMixedSaves; }

// Whether items of a key are rounded before they are compared. Refers to the set.
std::function<bool(i32 key)> round_test(const std::set<i32>& rounded) {
  if (rounded.empty()) return {};
  return [&](i32 key) { return rounded.contains(key); };
}

// A place in a file of the tested side. For bytes that are computed: the file that they are made of, and -1.
struct RealPlace {
  std::string file;
  i64 offset;
};
RealPlace real_place(const ComparedChunks& compared, i32 file, i64 offset) {
  const i64 made = file - std::ssize(compared.tested.files());
  if (made < 0) return {std::string(file_label(compared.tested, file)), offset};
  const StoreChunks::Entry e = compared.chunks.entry(made);
  return {std::string(file_label(compared.tested, compared.tested.chunk(e.tensor, e.chunk).file)), -1};
}

Finding difference_finding(const ComparedChunks& compared, const CompareSink::Difference& d) {
  RealPlace at = real_place(compared, d.file, d.offset);
  return {.code = Code::kUnequal,
          .tensor = compared.name(d.key),
          .file = std::move(at.file),
          .message = text_of(d, at.offset),
          .offset = at.offset};
}

// How the source stores what a key is made of: "bfloat16", of several "bfloat16 and float32".
std::string forms_of(const Store& source, std::span<const i64> tensors) {
  std::set<std::string> forms;
  for (i64 t : tensors) forms.insert(stored_form(source, t));
  std::string out;
  for (const std::string& form : forms) out += cat(out.empty() ? "" : " and ", form);
  return out;
}

// Names of tensors with the reason why they are not compared.
std::string reasons_text(const std::map<std::string, std::vector<std::string>>& names_of) {
  std::string out;
  for (const auto& [reason, names] : names_of)
    out += cat(out.empty() ? "" : "; ", listed(names, 3), " (", reason, ")");
  return out;
}

}  // namespace

Comparison::Comparison(const Store& tested, const Store& source, int threads, Counting counting,
                       TensorChoice choice, Observer& observer)
    : sides_(tested, source),
      threads_(threads),
      counting_(std::move(counting)),
      choice_(std::move(choice)),
      is_chosen_(choice_.test()),
      observer_(observer) {}

bool Comparison::decided() const { return counting_.first_decides && (!unlike_.empty() || !types_.empty()); }

bool Comparison::chooses(std::string_view tensor) {
  if (choice_.all() || is_chosen_(tensor)) return true;
  refused_.emplace(tensor);
  return false;
}

void Comparison::set_aside(std::string reason, UnlikeTensor tensor) {
  if (!chooses(tensor.tensor)) return;
  left_out_[std::move(reason)].push_back(tensor.tensor);
  unlike_.push_back(std::move(tensor));
}

void Comparison::leave_beside(const std::string& reason, std::string tensor) {
  if (chooses(tensor)) left_out_[reason].push_back(std::move(tensor));
}

void Comparison::leave_out(Finding finding, UnlikeTensor unlike) {
  if (!chooses(finding.tensor)) return;
  if (unlike.kind != UnlikeTensor::Kind::kOnlySource) unseen_.insert(finding.tensor);
  others_.push_back(std::move(finding));
  unlike_.push_back(std::move(unlike));
}

void Comparison::differs(Finding finding, std::optional<Difference> counted) {
  if (counted) counted_.push_back(std::move(*counted));
  unlike_.push_back({UnlikeTensor::Kind::kValues, finding.tensor});
  others_.push_back(std::move(finding));
}

bool Comparison::run(const ComparedChunks& all, VerifyReport& report) {
  if (choice_.all()) return run_chosen(all, report);
  const ChosenChunks chunks(all.tested, all.chunks, [&](i32 key) { return chooses(all.name(key)); });
  std::set<std::string> chosen(compared_.begin(), compared_.end());
  for (i64 c = 0; c < chunks.size(); c++) chosen.insert(all.name(chunks.key(c)));
  chosen.insert(unseen_.begin(), unseen_.end());
  if (chosen.empty() && unlike_.empty() && left_out_.empty()) {
    const std::vector<std::string_view> names(refused_.begin(), refused_.end());
    try {
      choice_.choose(names);  // throws, with the nearest name
    } catch (Error& e) {
      e.note("tensors are chosen by the names under which the two checkpoints are compared");
      throw;
    }
  }
  if (chosen.empty() && unlike_.empty())
    throw Error(Code::kNoSuchTensor, "no tensor that was chosen can be compared")
        .expected("a choice with tensors that both checkpoints have")
        .found(reasons_text(left_out_));
  return run_chosen({all.tested, chunks, all.source, std::ssize(chosen), all.name, all.job, all.made_of,
                     all.by_values, all.rows},
                    report);
}

void Comparison::note_types(const std::string& tensor, std::string tested, std::string source) {
  if (tested != source)
    types_.push_back({UnlikeTensor::Kind::kCast, tensor, std::move(tested), std::move(source)});
}

// Compares in the types of the tested side; a list of differences in types that have the values of both.
// Values that the tested side computes are in no file, and are made for either.
bool Comparison::run_chosen(const ComparedChunks& compared, VerifyReport& report) {
  const auto* values = compared.tested.unrounded();
  bool computed = false;
  std::map<i32, DType> types;  // by key
  for (i64 c = 0; c < compared.chunks.size(); c++) {
    const StoreChunks::Entry e = compared.chunks.entry(c);
    computed |= values && values->is_rounded(e.tensor);
    auto [type, fresh] = types.try_emplace(e.key, compared.tested.dtype(e.tensor));
    if (!fresh) continue;
    const std::vector<i64> made_of = compared.made_of(e.key);
    for (i64 t : made_of) {
      const DType other = compared.source.dtype(t);
      if (counting_.all && is_castable(type->second) && is_castable(other))
        type->second = common_type(type->second, other).value_or(type->second);
    }
    for (i64 t : made_of)
      if (!holds_values_of(type->second, compared.source.dtype(t))) rounded_.insert(e.key);
    if (counting_.all && !made_of.empty())
      note_types(compared.name(e.key), stored_form(compared.tested, e.tensor),
                 forms_of(compared.source, made_of));
  }
  const bool unlike_file =
      counting_.first_decides &&
      std::ranges::any_of(report.findings, [](const Finding& f) { return f.code == Code::kUnequal; });
  if (decided() || unlike_file) return add_checks(compared, {}, report);
  const std::vector<bool> apart = shared_chunks(compared.tested, compared.chunks);
  if (!counting_.all && !computed && std::ranges::find(apart, true) == apart.end())
    return run_in_types(compared, report);
  const WideChunks wide(
      compared.tested, compared.chunks, apart, [&](i32 key) { return types.at(key); }, compared.rows);
  return run_in_types({compared.tested, wide, compared.source, compared.tensors, compared.name, compared.job,
                       compared.made_of, compared.by_values},
                      report);
}

bool Comparison::run_in_types(const ComparedChunks& compared, VerifyReport& report) {
  CompareSink sink(compared.tested, compared.chunks,
                   counting_.first_decides ? CompareSink::Places::kOne
                   : counting_.all         ? CompareSink::Places::kCounted
                                           : CompareSink::Places::kFirst,
                   round_test(rounded_));
  ChunkJob all = compared.job(compared.chunks);
  std::vector<i32> rest;
  for (const Failure& failure : carry_out(all, sink, "compare", &lost_)) {
    if (compared_by_values(compared, failure, all.targets_of(failure.task))) continue;
    for (i32 c : judge(compared, failure, all.targets_of(failure.task))) rest.push_back(c);
  }
  if (!rest.empty()) {
    SomeChunks some(compared.chunks, std::move(rest));
    ChunkJob again = compared.job(some);
    for (const Failure& failure : carry_out(again, sink, "compare", &lost_))
      for (i32 c : again.targets_of(failure.task)) report_failure(failure, compared.name(some.key(c)));
  }
  leave_out_holes(compared);
  warn_of_overflow(report);
  std::ranges::move(counted_, std::back_inserter(report.differences));
  if (counting_.all) {
    report.compared = std::move(compared_);
    const std::set<std::string> by_values(report.compared.begin(), report.compared.end());
    std::set<i32> keys;
    for (i32 c = 0; c < compared.chunks.size(); c++)
      if (keys.insert(compared.chunks.key(c)).second)
        if (std::string name = compared.name(compared.chunks.key(c));
            !by_values.contains(name) && !unseen_.contains(name))
          report.compared.push_back(std::move(name));
  }
  std::vector<Finding> against = described(compared, sink, report);
  return add_checks(compared, std::move(against), report);
}

// Carries the job out and returns the tasks that failed because of damaged files. Other errors are thrown.
std::vector<Comparison::Failure> Comparison::carry_out(const CopyJob& job, CopySink& sink, const char* phase,
                                                       LostValues* lost) {
  std::vector<Failure> failures;
  std::mutex mutex;
  auto leave_out = [&](i64 task, const Error& e) {
    if (!is_of_files(e.code()) && !(sides_.have_holes() && e.code() == Code::kNotTiled)) return false;
    std::lock_guard lock(mutex);
    failures.push_back({task, e});
    return true;
  };
  observer_.begin(phase, bytes_of(job));
  ObservedSink observed(sink, observer_);
  run_copy(
      job, observed,
      {.threads = threads_, .stop = [&] { return observer_.stop(); }, .lost = lost, .leave_out = leave_out});
  observer_.end();
  std::ranges::sort(failures, {}, &Failure::task);
  return failures;
}

// Compares the tensors of a task that failed because of the order in which the tested side stores one of
// them.
bool Comparison::compared_by_values(const ComparedChunks& compared, const Failure& failure,
                                    std::span<const i32> chunks) {
  if (!compared.by_values || failure.error.code() != Code::kUnsupportedTensor) return false;
  std::set<std::pair<i32, i32>> tensors;
  for (i32 c : chunks) tensors.emplace(compared.chunks.entry(c).tensor, compared.chunks.key(c));
  return std::ranges::all_of(tensors, [&](auto t) { return compared.by_values(t.first, t.second); });
}

// Reports the records that keep a task from being carried out. Returns the chunks of the task that can be
// compared without them.
std::vector<i32> Comparison::judge(const ComparedChunks& compared, const Failure& failure,
                                   std::span<const i32> chunks) {
  std::vector<i32> sound;
  std::set<i32> keys;
  for (i32 c : chunks) {
    auto [key, tensor, chunk] = compared.chunks.entry(c);
    keys.insert(key);
    if (sides_.reads({ComparedSides::kTested, &compared.tested, tensor, chunk}))
      sound.push_back(c);
    else
      unseen_.insert(compared.name(key));
  }
  bool source_reads = true;
  for (i32 key : keys)
    for (i64 tensor : compared.made_of(key))
      for (i64 c = 0; c < compared.source.chunk_count(tensor); c++)
        source_reads &= sides_.reads({ComparedSides::kSource, &compared.source, tensor, c});
  if (source_reads && sound.size() < chunks.size()) return sound;
  for (i32 key : keys)
    if (source_reads)
      report_failure(failure, compared.name(key));
    else
      unseen_.insert(compared.name(key));
  return {};
}

// Reports a failure that no header explains: data that cannot be read.
void Comparison::report_failure(const Failure& failure, const std::string& tensor) {
  if (!unseen_.insert(tensor).second) return;
  if (failure.error.code() == Code::kNotTiled) return;  // a hole or an overlap, which an opener reported
  Finding finding = to_finding(failure.error);
  if (finding.tensor.empty()) finding.tensor = tensor;
  if (!sides_.add_by_file(finding)) others_.push_back(std::move(finding));
}

// Notes tensors whose chunks do not cover them on one of the sides, or overlap: what is stored nowhere was
// compared with nothing, and of two pieces of an item one was.
void Comparison::leave_out_holes(const ComparedChunks& compared) {
  if (!sides_.have_holes()) return;
  std::set<i32> seen;
  for (i32 c = 0; c < compared.chunks.size(); c++) {
    const auto [key, tensor, chunk] = compared.chunks.entry(c);
    if (!seen.insert(key).second) continue;
    bool whole = sides_.covers(ComparedSides::kTested, compared.tested, tensor);
    for (i64 t : compared.made_of(key)) whole &= sides_.covers(ComparedSides::kSource, compared.source, t);
    if (!whole) unseen_.insert(compared.name(key));
  }
}

// Pass 3, over the chunks of the keys that differ.
Comparison::Counts Comparison::counted_items(const ComparedChunks& compared, const std::set<i32>& keys) {
  std::vector<i32> chunks;
  for (i32 c = 0; c < compared.chunks.size(); c++)
    if (keys.contains(compared.chunks.key(c))) chunks.push_back(c);
  SomeChunks some(compared.chunks, std::move(chunks));
  ChunkJob job = compared.job(some);
  ItemTally::Within within;
  if (counting_.within) within = [&](i32 key) { return counting_.within(compared.name(key)); };
  ItemTally tally(compared.tested, some, within, round_test(rounded_));
  carry_out(job, tally, "count", nullptr);  // what fails was reported when it was compared
  return tally.counts();
}

// Passes 3 and 4: the findings about the tensors that differ, with counts and values for the first ones of
// them.
std::vector<Finding> Comparison::described(const ComparedChunks& compared, const CompareSink& sink,
                                           VerifyReport& report) {
  std::vector<CompareSink::Difference> differences = sink.differences();
  if (differences.empty()) return {};
  std::set<i32> listed;
  for (const CompareSink::Difference& d : differences) {
    unlike_.push_back({UnlikeTensor::Kind::kValues, compared.name(d.key)});
    if (counting_.first_decides) continue;
    if (counting_.all || std::ssize(listed) < Findings::kMostOfOneCode) listed.insert(d.key);
  }
  if (counting_.first_decides) return {difference_finding(compared, differences[0])};
  Counts counts = counted_items(compared, listed);
  Findings findings;
  for (const CompareSink::Difference& d : differences) {
    Finding finding = difference_finding(compared, d);
    if (auto at = counts.find(d.key); at != counts.end()) {
      ItemTally::Count c = at->second;
      if (counting_.turned) std::swap(c.expected, c.found);
      RealPlace place = real_place(compared, c.file, c.offset);
      finding.file = std::move(place.file), finding.offset = place.offset;
      report.differences.push_back({finding.tensor, finding.file, dims_to_string(c.index), c.expected,
                                    c.found, c.items, c.beyond(), c.distance});
      finding.message = difference_text(report.differences.back());
    }
    findings.add(std::move(finding));
  }
  sides_.check_sums(records_of(compared, listed), threads_, observer_);
  return findings.take();
}

// The records of both sides that contain the data of these keys.
std::vector<ComparedSides::Record> Comparison::records_of(const ComparedChunks& compared,
                                                          const std::set<i32>& keys) const {
  std::vector<ComparedSides::Record> records;
  std::set<i64> seen;  // tensors of the source
  for (i32 c = 0; c < compared.chunks.size(); c++) {
    auto [key, tensor, chunk] = compared.chunks.entry(c);
    if (!keys.contains(key)) continue;
    records.push_back({ComparedSides::kTested, &compared.tested, tensor, chunk});
    for (i64 t : compared.made_of(key)) {
      if (!seen.insert(t).second) continue;
      for (i64 i = 0; i < compared.source.chunk_count(t); i++)
        records.push_back({ComparedSides::kSource, &compared.source, t, i});
    }
  }
  return records;
}

// Warns of finite values that became infinite in a cast that the user wanted: they are equal to the result of
// a conversion, and lost. The warning gives no number of values, because chunks beside damage are cast twice.
void Comparison::warn_of_overflow(VerifyReport& report) const {
  std::vector<Finding> found;
  for (const LostValues::Tensor& t : lost_.tensors())
    found.push_back({.code = Code::kCastOverflow,
                     .tensor = t.name,
                     .message = "finite values of the source are infinite in the stored data type",
                     .warning = true});
  i64 count = std::ssize(found);
  if (count > 0) report.add({"overflow", Check::Status::kWarn, count, "tensors"}, std::move(found));
}

bool Comparison::add_checks(const ComparedChunks& compared, std::vector<Finding> against,
                            VerifyReport& report) {
  against.insert(against.begin(), others_.begin(), others_.end());
  bool equal = against.empty() && unseen_.empty() && !sides_.wrong();
  sides_.add_checks(report);
  std::ranges::move(unlike_, std::back_inserter(report.unlike));
  std::ranges::move(types_, std::back_inserter(report.unlike));
  Check check{"against",
              equal ? Check::Status::kPass : Check::Status::kFail,
              compared.tensors - std::ssize(unseen_),
              "tensors",
              std::ssize(unseen_),
              "could not be compared"};
  if (!left_out_.empty()) check.note = cat("not compared: ", reasons_text(left_out_));
  report.add(std::move(check), std::move(against));
  return equal;
}

}  // namespace mckpt::impl
