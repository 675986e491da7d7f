#include "tools/staged_copy.h"

#include <array>
#include <optional>

#include "io/file/source_stamps.h"
#include "io/file/staged_folder.h"
#include "io/verify/manifest_check.h"
#include "runtime/comm/world.h"
#include "runtime/watch/activity.h"
#include "tools/folder_manifest.h"
#include "tools/interrupt.h"
#include "tools/render/cast_losses_text.h"
#include "tools/render/progress.h"
#include "tools/resume_help.h"

namespace mckpt {
namespace {

struct Share {
  i64 first = 0, end = 0;
};

// Neighbouring tasks, as many as make up this rank's part of the bytes.
Share share_of(const CopyJob& job, i64 rank, i64 ranks) {
  i64 total = 0;
  for (i64 t = 0; t < job.task_count(); t++) total += job.task_bytes(t);
  Share share{job.task_count(), job.task_count()};
  i64 before = 0;
  for (i64 t = 0; t < job.task_count(); t++) {
    // The rank in whose part the task begins.
    i64 owner = total > 0 ? static_cast<i64>(static_cast<__int128>(before) * ranks / total) : 0;
    if (owner >= rank && share.first == job.task_count()) share.first = t;
    if (owner > rank) {
      share.end = t;
      break;
    }
    before += job.task_bytes(t);
  }
  share.first = std::min(share.first, share.end);
  return share;
}

i64 total_bytes(const std::vector<OutputFile>& files) {
  i64 bytes = 0;
  for (const OutputFile& f : files) bytes += f.bytes;
  return bytes;
}

StagedFolder::Options staging_of(const StagedCopy& copy, const ConvertOptions& options) {
  StagedFolder::Options staging{
      .durable = !options.no_sync, .replace = options.overwrite, .resume = options.resume};
  staging.copied = copy.beside.names();
  return staging;
}

void check_staged_copy(const StagedCopy& copy, const ConvertOptions& options) {
  std::vector<std::string> read;
  for (i32 f = 0; f < std::ssize(copy.source->files()); f++) read.push_back(file_path(*copy.source, f));
  OutputRules rules(copy.sources, read);
  rules.check_folder(copy.path);
  std::vector<std::string> results = {copy.path};
  if (copy.run) {
    StagedFile::check(copy.run->tracker_path(), {.replace = true}, 0);
    results.push_back(copy.run->tracker_path());
  }
  options.check_report(rules, results);
  StagedFolder::check(copy.path, staging_of(copy, options), copy.plan,
                      total_bytes(copy.files) + copy.beside.bytes(), std::ssize(copy.files) + 1);
}

// What the leader found, for all.
bool told_by_leader(Comm& comm, bool fact) {
  i64 told = comm.rank() == 0 && fact;
  comm.all_reduce({&told, 1}, Reduce::kMax);
  return told != 0;
}

void publish(StagedFolder& staged, const StagedCopy& copy) {
  staged.publish([&] {
    if (copy.run) copy.run->write_tracker();
  });
  note_published_output();
}

std::string_view resume_note(const StagedFolder& staged) {
  if (staged.published()) return "resume  the result is published; its last steps were left to do";
  return staged.resumes() ? "resume  going on with what an interrupted run left"
                          : "resume  nothing was begun here";
}

CopyCounts run_staged_copy(const StagedCopy& copy, const ConvertOptions& options, LostValues& lost,
                           const GlobalFlags& flags) {
  Comm& comm = world();
  bool leader = comm.rank() == 0;
  if (leader) comm.barrier();  // nothing was refused: the others come after
  stop_flag();

  std::optional<StagedFolder> staged;
  std::string folder;
  std::optional<OutputFiles> out;
  OutputFiles::How how_to_write = options.no_sync ? OutputFiles::How::kCached : OutputFiles::How::kDirect;
  if (leader) {
    staged.emplace(copy.path, staging_of(copy, options), copy.plan);
    note_staged_output(copy.path, options);
    folder = staged->folder();
    if (!staged->published())
      out.emplace(folder, copy.files,
                  staged->resumes() ? OutputFiles::Begin::kGoOn : OutputFiles::Begin::kCreate, how_to_write);
    if (options.resume) note(flags, resume_note(*staged));
  }
  if (told_by_leader(comm, staged && staged->published())) {
    if (leader) publish(*staged, copy);
    comm.barrier();
    return {};
  }
  if (!leader) {
    note_staged_output(copy.path, options);
    folder = StagedFolder::staging_path(copy.path);
    out.emplace(folder, copy.files, OutputFiles::Begin::kGoOn, how_to_write);
  }

  Share share = share_of(copy.job, comm.rank(), comm.size());
  CopyCounts counts;
  WrittenSums written;
  {
    TaskLog log(StagedFolder::log_path(folder), share.first, share.end, *out, !options.no_sync);
    Progress progress(flags, "write", total_bytes(copy.files) / comm.size());
    Phase phase("write", progress.counter());
    CopyOptions how = options.copying(progress);
    how.log = &log;
    how.sums = copy.sums;
    how.written = &written;
    how.lost = &lost;
    how.first_task = share.first, how.end_task = share.end;
    // What an interrupted run has read is judged as well.
    for (i64 t = share.first; t < share.end; t++) {
      if (!log.is_done(t)) continue;
      CopyTask done = copy.job.task(t);
      written.read(done, folder, copy.files);
      for (const Checksum& sum : done.sums)
        if (copy.sums) copy.sums->expect(sum);
    }
    auto going_on = [] {
      made_progress();
      check_stop();
    };
    try {
      counts = run_copy(copy.job, *out, how);
      if (copy.sums) copy.sums->check(*copy.source, going_on);
    } catch (const Error& e) {
      if (e.code() == Code::kInterrupted) log.flush();
      throw;
    }
  }
  Phase phase("finish");
  i64 numbers[] = {counts.bytes_read, counts.bytes_written, counts.reads, counts.writes, counts.rounded};
  // Each rank makes durable what it wrote: it may stand on another host than rank 0.
  if (!leader && !options.no_sync) out->sync();
  comm.all_reduce(numbers, Reduce::kSum);
  gather_losses(lost, comm);
  gather_sums(written, comm);
  if (lost.total().infinite > 0 && !options.allow_overflow) throw overflow_error(lost, copy.path);
  if (leader) {
    copy.finish(*out, folder);
    write_manifest(folder, written.finish(folder, copy.files), !options.no_sync);
    check_stop();
    if (!options.no_sync) out->sync();
    check_sources_unchanged();
    publish(*staged, copy);
  }
  comm.barrier();
  return {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]};
}

}  // namespace

void PlanText::add(std::string_view part) {
  sha_.update({reinterpret_cast<const u8*>(part.data()), part.size()});
  sha_.update(std::array<u8, 1>{0});  // so that parts cannot run into each other
}

bool follow_rank_0(const ConvertOptions& options) {
  bool leader = launch().rank == 0, alone = launch().size == 1 || options.dry_run;
  if (!alone) options.ranks.join();
  if (leader) options.check_report();
  if (!alone && !leader) world().barrier();
  return leader || !alone;
}

Exit carry_out(const StagedCopy& copy, ConvertReport& report, std::string_view command,
               const ConvertOptions& options, const GlobalFlags& flags,
               const std::function<void()>& published) {
  if (launch().rank == 0) {
    for (const std::string& source : copy.sources) require_listed_files(source);
    // The others come when rank 0 has taken the room.
    check_staged_copy(copy, options);
    if (const std::vector<std::string>& folders = copy.beside.left_out(); !folders.empty())
      warn(flags, cat("folders beside the model's files are not in the result: ", listed(folders, 20)));
  }
  if (!options.dry_run) {
    LostValues lost;
    CopyCounts counts = run_staged_copy(copy, options, lost, flags);
    report.infinite = lost.total().infinite, report.zero = lost.total().zero;
    report.overflowed = lost.tensors();
    report.bytes_read = counts.bytes_read;
    report.rounded = counts.rounded;
  }
  if (launch().rank != 0) return Exit::kOk;
  if (!options.dry_run && published) published();
  write_report(flags, command, report, !options.dry_run, options.report);
  return Exit::kOk;
}

}  // namespace mckpt
