// Errors with what only the program knows of them: the rank, and that --resume goes on.
#include "tools/run/error_report.h"

#include <cstdio>
#include <new>

#include "core/base/error.h"
#include "runtime/job/job.h"
#include "runtime/system/memory_room.h"
#include "tools/process/job.h"
#include "tools/render/json_error.h"
#include "tools/render/output.h"
#include "tools/run/resume_help.h"

namespace mckpt::impl {

GlobalFlags flags_for_errors(const std::vector<std::string>& args) {
  GlobalFlags flags;
  for (std::size_t i = 0; i < args.size() && args[i] != "--"; i++) {
    flags.json |= args[i] == "--json";
    flags.jsonl |= args[i] == "--jsonl";
    std::string value = args[i].starts_with("--color=")               ? args[i].substr(8)
                        : args[i] == "--color" && i + 1 < args.size() ? args[i + 1]
                                                                      : "";
    if (value == "always") flags.color = When::kAlways;
    if (value == "never") flags.color = When::kNever;
  }
  return flags;
}

void report_lost_rank(const GlobalFlags& flags, Error e) {
  add_resume_help(e);
  print_error(flags, e);
  write_json_error(flags, e);
}

void report_error(const GlobalFlags& flags, Error e) {
  // Every rank reads the same command line, so rank 0 reports what is wrong with it, where the ranks do not
  // choose one of them.
  bool common = code_info(e.code()).exit == Exit::kUsage;
  if (common && this_job().rank() != 0 && !this_job().one_reports()) return;
  if (!common && !this_job().alone()) e.note(cat("on rank ", this_job().rank()));
  report_lost_rank(flags, std::move(e));
}

void report_out_of_memory(const GlobalFlags& flags) {
  try {
    Error e(Code::kOutOfMemory, "out of memory");
    if (MemoryRoom room = memory_room(); room.bytes >= 0)
      e.found(cat(room.bytes, " bytes free, according to ", room.of));
    report_error(flags, std::move(e));
  } catch (const std::bad_alloc&) {
    // Without an allocation; so the code stands here as text.
    static_assert(static_cast<int>(Code::kOutOfMemory) == 9902);
    std::fputs("error[MC9902]: out of memory\nhelp: more: mckpt explain MC9902\n", stderr);
    write_json_out_of_memory(flags);
  }
}

}  // namespace mckpt::impl
