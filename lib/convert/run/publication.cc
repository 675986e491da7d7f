// Rank 0 makes, completes and publishes the result; the other ranks write into its files. Every rank syncs
// what it wrote itself (fsync), because it may run on another host than rank 0.
#include "convert/run/publication.h"

#include "convert/plan/target.h"
#include "convert/run/rank_sums.h"
#include "convert/run/run.h"
#include "core/base/error.h"
#include "hf/quantized/value_faults.h"
#include "io/copy/counts.h"
#include "io/copy/lost_values.h"
#include "io/copy/written_sums.h"
#include "io/file/file.h"
#include "io/listing/manifest.h"
#include "io/output/staged_content.h"
#include "io/output/unfinished.h"
#include "io/store/soundness.h"
#include "runtime/comm/comm.h"

namespace mckpt::impl {
namespace {

// Collective: returns rank 0's `fact` on every rank.
bool rank_0_says(Comm& ranks, bool fact) {
  i64 said = ranks.rank() == 0 && fact;
  ranks.all_reduce({&said, 1}, Reduce::kMax);
  return said != 0;
}

RunResult::Resumed resumed(const StagedResult& staged) {
  using Resumed = RunResult::Resumed;
  if (staged.published()) return Resumed::kPublished;
  return staged.resumes() ? Resumed::kUnfinished : Resumed::kNothing;
}

// Nothing ("") where nothing was left and nobody asked for it.
std::string resume_note(const StagedResult& staged, bool asked) {
  using Resumed = RunResult::Resumed;
  if (staged.began_anew())
    return "begin   an interrupted run left an unfinished output that this run cannot continue; it was removed";
  switch (resumed(staged)) {
    case Resumed::kPublished:
      return "resume  the result was already published; only its last steps remain";
    case Resumed::kUnfinished:
      return "resume  continues the unfinished output of an interrupted run of the same command";
    case Resumed::kNothing:
      break;
  }
  return asked ? "resume  there is no unfinished output, so the conversion starts from the beginning" : "";
}

std::vector<std::string> names_of(const std::vector<OutputFile>& files) {
  std::vector<std::string> names;
  for (const OutputFile& f : files) names.push_back(f.name);
  return names;
}

void write_manifest(const std::string& folder, std::vector<ManifestFile> summed, bool durable) {
  std::string text = make_manifest(folder, std::move(summed), MCKPT_VERSION).text();
  OutputFiles out(folder, {{std::string(kManifestName), std::ssize(text)}}, OutputFiles::Begin::kReplace);
  out.write(0, 0, std::span(reinterpret_cast<const u8*>(text.data()), text.size()));
  if (durable) out.sync();
}

}  // namespace

Publication::Publication(const Conversion& conversion, const RunOptions& options, Comm& ranks,
                         Observer& observer)
    : conversion_(conversion), options_(options), ranks_(ranks), observer_(observer) {}

bool Publication::leader() const { return ranks_.rank() == 0; }

bool Publication::stage() {
  check_stop(observer_);
  // A folder that must be durable is written with direct I/O where the file system allows it.
  bool direct = options_.durable && !conversion_.single_file;
  OutputFiles::How how = direct ? OutputFiles::How::kDirect : OutputFiles::How::kCached;
  if (leader()) {
    staged_.emplace(conversion_, options_);
    observer_.staged(conversion_.path);
    folder_ = staged_->folder();
    if (std::string note = resume_note(*staged_, options_.resume); !note.empty())
      observer_.note({Note::Kind::kNote, note});
    using Begin = OutputFiles::Begin;
    if (staged_->resumes() && !staged_->published()) keep_only(folder_, names_of(staged_files(conversion_)));
    if (!staged_->published())
      out_.emplace(folder_, staged_files(conversion_), staged_->resumes() ? Begin::kGoOn : Begin::kCreate,
                   how);
  }
  if (rank_0_says(ranks_, staged_ && staged_->published())) return false;
  if (!leader()) {
    observer_.staged(conversion_.path);
    folder_ = staging_path(conversion_);
    out_.emplace(folder_, staged_files(conversion_), OutputFiles::Begin::kGoOn, how);
  }
  sink_.emplace(*out_, observer_);
  return true;
}

void Publication::failed(const Error& error) {
  if (!staged_ || can_go_on_after(error)) return;
  if (int fault = staged_->give_up(); fault != 0)
    observer_.note({Note::Kind::kWarning,
                    cat("the unfinished output could not be marked as one of a damaged source: remove ",
                        escaped(staging_path(conversion_), 4096), ": ", errno_text(fault))});
}

void Publication::publish(WrittenSums& sums) {
  if (out_) {
    conversion_.target->write_frame({*out_, folder_, options_.durable, sums, conversion_.beside});
    if (!conversion_.single_file)
      write_manifest(folder_, sums.finish(folder_, conversion_.files), options_.durable);
    check_stop(observer_);
    if (options_.durable && !conversion_.single_file) out_->sync();
    check_unchanged(conversion_.opening);
  }
  staged_->publish(out_ ? &*out_ : nullptr);
  observer_.published();
}

RunResult Publication::conclude(const CopyCounts& mine, WrittenSums& sums, LostValues& lost) {
  RunResult result;
  if (leader()) result.resumed = resumed(*staged_);
  observer_.begin("finish", 0);
  i64 numbers[] = {mine.bytes_read, mine.bytes_written, mine.reads, mine.writes, mine.rounded};
  if (!leader() && out_ && options_.durable) out_->sync();
  ranks_.all_reduce(numbers, Reduce::kSum);
  const ValueFaults* faults = conversion_.behind ? conversion_.behind->faults : nullptr;
  add_losses(conversion_, lost);
  gather_losses(lost, ranks_);
  gather_sums(sums, ranks_);
  if (lost.total().infinite > 0 && !options_.allow_overflow) throw overflow_error(lost, conversion_.path);
  if (leader()) publish(sums);
  ranks_.barrier();
  std::vector<i64> marks;
  if (faults) marks = faults->marks();
  ranks_.all_reduce(marks, Reduce::kMax);
  if (leader() && faults)
    for (const Finding& f : faults->findings(marks)) result.notes.warn(finding_text(f));
  observer_.end();
  result.counts = {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]};
  result.became_infinite = lost.total().infinite, result.became_zero = lost.total().zero;
  result.overflowed = lost.tensors();
  return result;
}

}  // namespace mckpt::impl
