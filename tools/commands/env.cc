// mckpt env: what this mckpt is and runs on, and which of its modules are here and load.
//
//   mckpt 0.2.0
//     compiler   gcc 12.2.0, Release
//     processor  AMD EPYC, 2 cores
//     ranks      1
//
//   mpi        runs over several ranks (Open MPI)
//     file       /opt/mckpt/libmckpt_mpi.so
//     version    Open MPI v4.1.4
//
// Each module is really loaded, and the HDF5 helper really started, because a file that exists may still need
// a library that does not. Exit status 1: a module is here and does not load.
#include <sched.h>

#include <fstream>
#include <thread>

#include "build_info.h"
#include "core/base/error.h"
#include "io/hdf5/helper.h"
#include "runtime/comm/comm.h"
#include "runtime/job/job.h"
#include "runtime/modules/module.h"
#include "tools/answers/env_answer.h"
#include "tools/commands/commands.h"
#include "tools/options/command_line.h"
#include "tools/process/job.h"
#include "tools/process/module_path.h"
#include "tools/render/output.h"

namespace mckpt::impl {
namespace {

// "built", or why the build has no such module, as CMake recorded it.
std::string_view build_state(std::string_view name) {
  for (const ModuleBuild& build : kModuleBuilds)
    if (build.name == name) return build.state;
  return "unknown to this build";
}

// Fills in a module without a file: whether this build should have it, and how to get it.
void report_absent(ModuleReport& report, std::string_view get) {
  std::string_view state = build_state(report.name);
  report.help = get;
  report.problem = state == "built"                ? "built, but not found beside the program"
                   : get.starts_with("python -m ") ? "not built for this machine yet"
                                                   : cat("not built: ", state);
}

// `facts` loads the module, or starts the program, and returns what it says about itself.
template <typename Facts>
ModuleReport look_at(ModuleReport report, std::string_view get, Facts&& facts) {
  report.built = build_state(report.name) == "built";
  if (report.path.empty()) {
    report_absent(report, get);
    return report;
  }
  try {
    report.facts = facts(report.path);
  } catch (const Error& e) {
    report.problem = e.what();
    for (const std::string& text : e.notes()) report.problem += cat(": ", text);
    report.help = e.help();
  }
  return report;
}

// Loads the module into this process, as a command that needs it would.
ModuleReport look_at_module(const ModuleKind& kind) {
  return look_at({.name = kind.name, .purpose = kind.purpose, .path = find_module(kind.name, module_path())},
                 how_to_get(kind.name, module_path()),
                 [&](const std::string&) { return describe_module(load_module(kind.name, module_path())); });
}

// HDF5 is a program and no module: its version is asked for by starting it.
ModuleReport look_at_hdf5() {
  using Facts = std::vector<std::pair<std::string, std::string>>;
  return look_at({.name = "hdf5", .purpose = kHdf5HelperPurpose, .path = find_hdf5_helper(module_path())},
                 kHdf5HelperHelp, [](const std::string& path) {
                   return Facts{{"version", hdf5_helper_version(path)}};
                 });
}

std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  return "unknown";
}

// The processors that this process may use: a container or a launcher may give fewer than the machine has.
int usable_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::thread::hardware_concurrency());
}

std::string compiler() {
#ifdef __clang__
  return cat("clang ", __clang_major__, ".", __clang_minor__, ".", __clang_patchlevel__);
#else
  return cat("gcc ", __GNUC__, ".", __GNUC_MINOR__, ".", __GNUC_PATCHLEVEL__);
#endif
}

}  // namespace

Exit env_command(CommandLine& line) {
  line.example("mckpt env");
  line.example("mckpt env --json");
  line.example("mpirun -n 2 mckpt env");
  line.parse();
  Comm& ranks = this_job().comm();
  if (ranks.rank() != 0) return Exit::kOk;
  EnvAnswer answer{.compiler = compiler(),
                   .build_type = std::string(kBuildType),
                   .processor = processor(),
                   .cores = usable_cores(),
                   .ranks = ranks.size()};
  for (const ModuleKind& kind : module_kinds()) answer.modules.push_back(look_at_module(kind));
  answer.modules.push_back(look_at_hdf5());
  Output out(line.flags());
  out.json() ? write_env_json(out, answer) : write_env_text(out, answer);
  out.flush();
  return answer.ok() ? Exit::kOk : Exit::kNo;
}

}  // namespace mckpt::impl
