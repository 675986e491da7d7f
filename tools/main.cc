// The program: finds the command in the table, runs it, and turns what comes out of it into an exit status.
// The one place that catches errors.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <new>

#include "core/base/error.h"
#include "io/file/source_stamps.h"
#include "runtime/comm/claim.h"
#include "runtime/job/job.h"
#include "tools/commands/command_table.h"
#include "tools/options/command_line.h"
#include "tools/process/heap.h"
#include "tools/process/interrupt.h"
#include "tools/process/job.h"
#include "tools/render/output.h"
#include "tools/run/error_report.h"

#ifndef MCKPT_VERSION
#error "the build sets MCKPT_VERSION"
#endif

namespace mckpt::impl {
namespace {

Exit print(std::string_view text) {
  if (this_job().rank() != 0) return Exit::kOk;
  Output out(GlobalFlags{});
  out.keep_lines();
  out.write(text);
  out.flush();
  return Exit::kOk;
}

// A fault of a file may come from its being written at the time.
void tell_changed_source(Error& e, const SourceStamps& sources) {
  if (code_info(e.code()).exit != Exit::kInput || e.code() == Code::kReadFailed) return;
  if (std::string path = sources.first_changed(); !path.empty())
    e.note(cat("a file was changed while it was read: ", escaped(path, 4096)));
}

Exit run_command(std::string_view name, std::vector<std::string> args) {
  const Command& command = find_command(name);
  if (this_job().rank() != 0 && (asks_for_help(args) || !command.on_every_rank)) return Exit::kOk;
  CommandLine line(std::string(command.name), std::string(command.summary), std::move(args));
  try {
    return command.run(line);
  } catch (Error& e) {
    bool usage = code_info(e.code()).exit == Exit::kUsage;
    if (usage && e.help().empty()) e.help(cat("mckpt ", line.command(), " --help"));
    tell_changed_source(e, *line.opening().stamps);
    throw;
  }
}

// --model_files is --model-files, as behind the command.
std::string with_hyphens(std::string option) {
  if (option.starts_with("--")) std::ranges::replace(option, '_', '-');
  return option;
}

// The options that may stand before the command: the options of every command, and of the program itself.
class LeadingOptions {
 public:
  LeadingOptions() : rows_(global_options()) {
    for (const HelpPage::Row& row : rows_) names_.insert(names_.end(), row.names.begin(), row.names.end());
    names_.insert(names_.end(), {"-vv", "-V", "--version"});
  }

  const std::vector<std::string_view>& names() const { return names_; }
  bool has(const std::string& name) const {
    return std::ranges::find(names_, with_hyphens(name)) != names_.end();
  }
  // Whether the next argument is the value of this one.
  bool takes_value(const std::string& arg) const {
    const std::string name = with_hyphens(arg);
    return std::ranges::any_of(rows_, [&](const HelpPage::Row& row) {
      return !row.value.empty() && std::ranges::find(row.names, name) != row.names.end();
    });
  }

 private:
  std::vector<HelpPage::Row> rows_;
  std::vector<std::string_view> names_;
};

// Without a command behind them nobody else looks at these options.
void refuse_unknown_options(std::span<const std::string> leading, const LeadingOptions& options) {
  for (const std::string& arg : leading) {
    std::string name = arg.substr(0, arg.find('='));
    if (!name.starts_with('-') || name == "--" || options.has(name)) continue;
    std::string_view near = nearest(name, options.names());
    Error e(Code::kUsage, cat("there is no option '", escaped(name), "'",
                              near.empty() ? "" : cat("; did you mean ", near, "?")));
    if (near.empty()) e.note("options of a command follow its name");
    throw e.help("mckpt --help");
  }
}

Exit run(std::vector<std::string> args) {
  // Global flags may stand before the command; they move behind it, to the command's own parser.
  const LeadingOptions leading;
  std::size_t at = 0;
  while (at < args.size() && args[at].starts_with("-")) {
    if (asks_for_help(std::span(args).subspan(at, 1))) return print(main_help());
    if (args[at] == "-V" || args[at] == "--version") return print(cat("mckpt ", MCKPT_VERSION, "\n"));
    at += leading.takes_value(args[at]) ? 2 : 1;
  }
  if (at >= args.size()) {
    if (at == 0) return print(main_help());
    refuse_unknown_options(args, leading);
    throw Error(Code::kUsage, "a command is missing").help("mckpt --help");
  }
  std::string name = args[at];
  if (!is_command(name)) refuse_unknown_options(std::span(args).first(at), leading);
  args.erase(args.begin() + static_cast<std::ptrdiff_t>(at));
  // An argument before the command stays first: a `--` further on must not hide it.
  return run_command(name, std::move(args));
}

// A standard stream that the caller closed would have its number taken by the first file that is opened, and
// what is meant for the stream would be written into that file. Reads and writes fail as before.
void hold_standard_streams() {
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(fd, F_GETFD) < 0) ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int status_of(Code code) {
  return code == Code::kInterrupted ? interrupted_status() : static_cast<int>(code_info(code).exit);
}

// Runs the command, prints its error if it ends with one, and leaves the job of ranks if it joined one. If
// several ranks end with errors, one prints its own.
int run_reporting(const std::vector<std::string>& args) {
  GlobalFlags flags = flags_for_errors(args);
  this_job().report_by([&](const Error& e) { report_lost_rank(flags, e); });
  auto end = [](int status, const std::function<void()>& tell, bool follows = false) {
    this_job().end(status, tell, follows);
    return status;
  };
  try {
    int status = static_cast<int>(run(args));
    this_job().leave();
    return status;
  } catch (const HelpShown&) {
    return end(0, [] {});
  } catch (const BrokenPipe&) {
    return end(128 + SIGPIPE, [] {});  // as if the signal had ended it: the answer was not given to its end
  } catch (const Error& e) {
    return end(
        status_of(e.code()), [&] { report_error(flags, e); }, may_follow(e.code()));
  } catch (const std::bad_alloc&) {
    return end(status_of(Code::kOutOfMemory), [&] { report_out_of_memory(flags); });
  } catch (const std::exception& e) {
    Error internal(Code::kInternal, escaped(e.what()));
    return end(status_of(Code::kInternal), [&] { report_error(flags, internal); });
  }
}

}  // namespace
}  // namespace mckpt::impl

int main(int argc, char** argv) {
  mckpt::impl::hold_standard_streams();
  mckpt::impl::prepare_heap();
  // A reader of stdout that goes away must end the program by an error value, not in the middle of writing a
  // file.
  std::signal(SIGPIPE, SIG_IGN);
  // A file that grows beyond the limit of the shell likewise.
  std::signal(SIGXFSZ, SIG_IGN);
  return mckpt::impl::run_reporting(std::vector<std::string>(argv + (argc > 0), argv + argc));
}
