// The program: finds the command in one table, runs it, and turns what comes out of it into an exit status.
// The only place that prints errors.
#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "io/file/source_stamps.h"
#include "runtime/comm/world.h"
#include "runtime/system/memory_room.h"
#include "tools/commands/commands.h"
#include "tools/options/help_page.h"
#include "tools/rank_errors.h"
#include "tools/render/json_error.h"
#include "tools/resume_help.h"

#ifndef MCKPT_VERSION
#error "the build sets MCKPT_VERSION"
#endif

namespace mckpt {
namespace {

Exit help_command(CommandLine& line);

struct Command {
  std::string_view group, name, arguments, summary;
  Exit (*run)(CommandLine&);
  // Under a launcher, a command that does not share its work among ranks runs in rank 0 alone.
  bool on_every_rank = false;
  bool has_modes = false;  // with a help page each
};

constexpr Command kCommands[] = {
    {"Look", "inspect", "PATH...", "what it is: format, tensors, layout, objects", inspect_command},
    {"Look", "ls", "PATH [GLOB]", "one line for each tensor, from headers", ls_command},
    {"Look", "stats", "PATH [GLOB]", "value statistics and a histogram (reads data)", stats_command},
    {"Look", "cat", "PATH NAME[SLICE]", "values of one tensor, as in 'lm_head.weight[0:4, :8]'", cat_command},
    {"Look", "pattern", "PATTERN", "a HybridStack layer pattern explained", pattern_command},
    {"Look", "layout", "SHAPE...", "how Megatron-FSDP packs parameters of these shapes", layout_command},
    {"Check", "verify", "PATH", "is it whole, and equal to its source (--against)", verify_command},
    {"Make", "convert", "MODE SRC DST", "another format; --help lists the modes", convert_command, true,
     true},
    {"Make", "export", "SRC HF_DIR", "a sharded checkpoint into a Hugging Face folder", export_command, true},
    {"Make", "roundtrip", "HF_DIR", "into a live sharded model and back, compared", roundtrip_command, true},
    {"Help", "env", "", "what mckpt runs on, and its modules", env_command, true},
    {"Help", "explain", "[CODE]", "what an error code means", explain_command},
    {"Help", "formats", "", "the file formats and data types mckpt knows", formats_command},
    {"Help", "mappings", "[list|show|check|draw]", "the tables of the model families", mappings_command},
    {"Help", "help", "[COMMAND [MODE]]", "this page, or that of one command", help_command},
};

const HelpPage::Option kGlobalOptions[] = {
    {"Global", "--json, --jsonl", "print the answer as JSON: one object, or one object a line"},
    {"Global", "-q, -v", "less or more output on stderr"},
    {"Global", "--progress HOW", "how progress is shown: auto, bar, plain, json or none"},
    {"Global", "--color WHEN, --ascii", "when colour is used: auto, always or never; draw with ASCII only"},
    {"Global", "--follow-links", "follow links that lead out of a checkpoint's folder"},
    {"Global", "-h, --help", "print this page, or that of the command"},
    {"Global", "-V, --version", "print the version"},
};

std::string main_help() {
  HelpPage page;
  page.summary = "convert, inspect and prove LLM checkpoints";
  for (const Command& c : kCommands)
    page.options.push_back({std::string(c.group), cat(c.name, c.arguments.empty() ? "" : " ", c.arguments),
                            std::string(c.summary)});
  page.options.insert(page.options.end(), std::begin(kGlobalOptions), std::end(kGlobalOptions));
  std::string_view exits =
      "Exit status: 0 done, equal or healthy; 1 the answer is no; 2 usage; 3 input missing, corrupt or "
      "unsupported; 4 refused before writing; 5 writing failed; 130 interrupted (143 by SIGTERM, 129 by "
      "SIGHUP)";
  return cat(help_text(page, "", "Usage: mckpt [OPTIONS] COMMAND [ARGS]", help_width()), "\n",
             wrapped(exits, help_width(), 0, 0), "\n");
}

Exit print(std::string_view text) {
  if (launch().rank != 0) return Exit::kOk;
  Output out(GlobalFlags{});
  out.write(text);
  out.flush();
  return Exit::kOk;
}

const Command& find_command(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Command& c : kCommands) {
    if (c.name == name) return c;
    names.push_back(c.name);
  }
  Error e(Code::kUnknownCommand, cat("there is no command '", escaped(name), "'"));
  if (std::string_view near = nearest(name, names); !near.empty())
    e.help(cat("did you mean `mckpt ", near, "`?"));
  throw e.note("mckpt --help lists the commands");
}

// What is wrong with a file may be that it was being written.
void tell_changed_source(Error& e, const SourceStamps& sources) {
  if (code_info(e.code()).exit != Exit::kInput || e.code() == Code::kReadFailed) return;
  if (std::string path = sources.first_changed(); !path.empty())
    e.note(cat("a file was changed while it was read: ", escaped(path, 4096)));
}

Exit run_command(std::string_view name, std::vector<std::string> args) {
  const Command& command = find_command(name);
  if (launch().rank != 0 && (asks_for_help(args) || !command.on_every_rank)) return Exit::kOk;
  CommandLine line(std::string(command.name), std::string(command.summary), std::move(args));
  SourceStamps sources;
  try {
    return command.run(line);
  } catch (Error& e) {
    bool usage = code_info(e.code()).exit == Exit::kUsage;
    if (usage && e.help().empty()) e.help(cat("mckpt ", line.command(), " --help"));
    tell_changed_source(e, sources);
    throw;
  }
}

Exit help_command(CommandLine& line) {
  std::optional<std::string> command, mode;
  line.positional("COMMAND", command, "a command; without it, all of them are listed");
  line.positional("MODE", mode, "of a command that has modes");
  line.example("mckpt help pattern");
  line.example("mckpt help convert reshard");
  line.parse();
  if (!command) return print(main_help());
  if (!mode) return run_command(*command, {"--help"});
  if (!find_command(*command).has_modes)
    throw Error(Code::kUsage, cat("unexpected argument '", escaped(*mode), "'"))
        .note(cat("the help of ", escaped(*command), " is one page"));
  return run_command(*command, {*mode, "--help"});
}

// Options that may stand before the command.
constexpr std::string_view kLeadingOptions[] = {
    "--json",  "--jsonl",        "-q", "--quiet", "-v", "-vv",      "--verbose", "--progress", "--color",
    "--ascii", "--follow-links", "-h", "--help",  "-V", "--version"};

// Without a command behind them nobody else looks at these options.
void refuse_unknown_options(std::span<const std::string> leading) {
  for (const std::string& arg : leading) {
    std::string name = arg.substr(0, arg.find('='));
    bool known = !name.starts_with('-') || name == "--" ||
                 std::ranges::find(kLeadingOptions, name) != std::end(kLeadingOptions);
    if (known) continue;
    std::string_view near = nearest(name, kLeadingOptions);
    Error e(Code::kUsage, cat("there is no option '", escaped(name), "'",
                              near.empty() ? "" : cat("; did you mean ", near, "?")));
    if (near.empty()) e.note("options of a command stand behind it");
    throw e.help("mckpt --help");
  }
}

Exit run(std::vector<std::string> args) {
  // Global flags may stand before the command; they move behind it, to the command's own parser.
  std::size_t at = 0;
  while (at < args.size() && args[at].starts_with("-")) {
    if (args[at] == "-h" || args[at] == "--help") return print(main_help());
    if (args[at] == "-V" || args[at] == "--version") return print(cat("mckpt ", MCKPT_VERSION, "\n"));
    at += args[at] == "--color" || args[at] == "--progress" ? 2 : 1;
  }
  if (at >= args.size()) {
    if (at == 0) return print(main_help());
    refuse_unknown_options(args);
    throw Error(Code::kUsage, "a command is missing").help("mckpt --help");
  }
  std::string name = args[at];
  if (std::ranges::find(kCommands, name, &Command::name) == std::end(kCommands))
    refuse_unknown_options(std::span(args).first(at));
  args.erase(args.begin() + static_cast<std::ptrdiff_t>(at));
  // What stood before the command stays first: a `--` further on must not hide it.
  return run_command(name, std::move(args));
}

// Flags that decide how an error is printed, read without a parser because the parser may be what failed.
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

void report(const GlobalFlags& flags, Error e) {
  Launch job = launch();
  // Every rank reads the same command line: one of them says what is wrong with it. Ranks that are watched
  // are asked one by one.
  bool common = code_info(e.code()).exit == Exit::kUsage;
  if (common && job.rank != 0 && !world_is_watched()) return;
  if (!common && job.size != 1) e.note(cat("on rank ", job.rank));
  add_resume_help(e);
  print_error(flags, e);
  write_json_error(flags, e);
}

void report_out_of_memory(const GlobalFlags& flags) {
  try {
    Error e(Code::kOutOfMemory, "out of memory");
    if (MemoryRoom room = memory_room(); room.bytes >= 0)
      e.found(cat(room.bytes, " bytes free, by ", room.of));
    report(flags, std::move(e));
  } catch (const std::bad_alloc&) {
    // Without an allocation; so the code stands here as text.
    static_assert(static_cast<int>(Code::kOutOfMemory) == 9902);
    std::fputs("error[MC9902]: out of memory\nhelp: more: mckpt explain MC9902\n", stderr);
    write_json_out_of_memory(flags);
  }
}

// A standard stream that the caller closed would have its number taken by the first file that is opened, and
// what is meant for the stream would be written into that file. Reads and writes fail as before.
void hold_standard_streams() {
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(fd, F_GETFD) < 0) open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

// Tables of headers grow by doubling. In one heap their old halves are used again; given back to the kernel
// each time, every page of them is faulted in anew, which is a quarter of the time of a listing. The heap's
// first room, enough for the headers of nearly all checkpoints, is set aside at once and in huge pages, which
// fault once for 2 MB; it costs nothing until it is used.
void prepare_heap() {
  constexpr int kRoom = 256 << 20;
  constexpr std::size_t kPage = 4 << 10, kHugePage = 2 << 20;
  constexpr std::size_t kFirst = 192 << 10;  // more than is left: the heap grows
  mallopt(M_MMAP_THRESHOLD, 32 << 20);       // the most that it takes
  mallopt(M_TRIM_THRESHOLD, 2 * kRoom);
  mallopt(M_TOP_PAD, kRoom);
  // The allocator writes in front of and behind the first piece at once, and a huge page is not made where a
  // small one is already: so that piece ends right before the first of them.
  auto misfit = reinterpret_cast<std::size_t>(sbrk(0)) + kFirst + kPage;
  sbrk(static_cast<std::intptr_t>(-misfit % kHugePage));
  void* first = std::malloc(kFirst);
  char *begin = static_cast<char*>(first) + kFirst, *end = static_cast<char*>(sbrk(0));
  begin += -reinterpret_cast<std::size_t>(begin) % kPage;
  if (first != nullptr && begin < end) madvise(begin, static_cast<std::size_t>(end - begin), MADV_HUGEPAGE);
  std::free(first);
  mallopt(M_TOP_PAD, 1 << 20);
}

// Runs the command, prints its error if it ends with one, and leaves the job of ranks if it joined one. Of
// several ranks that end with errors one prints its own.
int run_reporting(const std::vector<std::string>& args) {
  GlobalFlags flags = flags_for_errors(args);
  tell_lost_ranks_by([&](Error e) {
    add_resume_help(e);
    print_error(flags, e);
    write_json_error(flags, e);
  });
  int status = 0;
  try {
    status = static_cast<int>(run(args));
    leave_world();
    return status;
  } catch (const HelpShown&) {
    abort_world(status);
  } catch (const BrokenPipe&) {
    abort_world(status);
  } catch (const Error& e) {
    abort_world(
        status = status_of(e.code()), [&] { report(flags, e); }, may_follow(e.code()));
  } catch (const std::bad_alloc&) {
    abort_world(status = status_of(Code::kOutOfMemory), [&] { report_out_of_memory(flags); });
  } catch (const std::exception& e) {
    status = status_of(Code::kInternal);
    abort_world(status, [&] { report(flags, Error(Code::kInternal, escaped(e.what()))); });
  }
  return status;
}

}  // namespace
}  // namespace mckpt

int main(int argc, char** argv) {
  mckpt::hold_standard_streams();
  mckpt::prepare_heap();
  // A reader of stdout that goes away must end the program by an error value, not in the middle of writing a
  // file.
  std::signal(SIGPIPE, SIG_IGN);
  // A file that grows beyond the limit of the shell likewise.
  std::signal(SIGXFSZ, SIG_IGN);
  return mckpt::run_reporting(std::vector<std::string>(argv + (argc > 0), argv + argc));
}
