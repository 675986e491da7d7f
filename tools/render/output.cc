// Buffers stdout, decides about colour and characters, and prints errors in the form of rustc's:
//
//   error[MC1101]: the file is cut short
//     --> model.safetensors
//      | tensor   lm_head.weight
//      | at byte  3,352
//      | expected 14,816 bytes
//      | found    14,000 bytes
//      = a note
//   help: fetch the file again
//         more: mckpt explain MC1101
//
// Lines that are longer than the terminal are broken (fold_text.h). Writing to stderr never fails: a command
// whose stderr is closed still does its work.
#include "tools/render/output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "runtime/job/job.h"
#include "tools/process/job.h"
#include "tools/render/fold_text.h"
#include "tools/render/progress.h"
#include "tools/render/setting_names.h"

namespace mckpt::impl {
namespace {

constexpr std::size_t kFlushBytes = 1 << 16;
constexpr int kNoTerminal = 1 << 20;  // columns of a pipe or file

bool stdout_used = false;
bool reader_gone = false;  // of stdout

// True if the variable is set and not empty.
bool env_set(const char* name) {
  const char* v = std::getenv(name);
  return v && *v;
}

// The pseudo-terminal that mpirun gives a rank is not the one that the user looks at.
bool is_terminal(int fd) { return isatty(fd) && this_job().alone(); }

std::optional<int> terminal_width(int fd) {
  winsize size{};
  if (!is_terminal(fd)) return {};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

// https://no-color.org and https://bixense.com/clicolors; an explicit --color wins over both.
bool want_color(When when, int fd) {
  if (when != When::kAuto) return when == When::kAlways;
  if (env_set("NO_COLOR")) return false;
  if (env_set("CLICOLOR_FORCE") && std::strcmp(std::getenv("CLICOLOR_FORCE"), "0") != 0) return true;
  const char* term = std::getenv("TERM");
  return is_terminal(fd) && !(term && std::strcmp(term, "dumb") == 0);
}

// The first of the three variables that is set decides, as in setlocale(); no locale is loaded.
bool utf8_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"})
    if (const char* v = std::getenv(name); v && *v) return std::strstr(v, "UTF-8") || std::strstr(v, "utf8");
  return false;
}

void to_stderr(std::string_view text) {
  std::string folded;
  if (std::optional<int> width = stderr_width()) {
    folded = folded_text(text, static_cast<std::size_t>(*width));
    text = folded;
  }
  clear_progress();
  // Nothing can be done about a stderr that does not take the text.
  [[maybe_unused]] auto n = std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace

Output::Output(const GlobalFlags& flags)
    : color_(want_color(flags.color, STDOUT_FILENO) && !flags.json && !flags.jsonl),
      unicode_(!flags.ascii && utf8_locale()),
      json_(flags.json || flags.jsonl),
      terminal_(is_terminal(STDOUT_FILENO)),
      width_(terminal_width(STDOUT_FILENO).value_or(kNoTerminal)) {}

void Output::write(std::string_view text) {
  buffer_ += text;
  if (buffer_.size() < kFlushBytes) return;
  flush();
  if (reader_gone) throw BrokenPipe{};
}

// A reader that went away has no say in the answer: the command that flushes the end of it returns its
// status. A write after that ends the command.
void Output::flush() {
  if (reader_gone) throw BrokenPipe{};
  if (!json_ && width_ < kNoTerminal) buffer_ = folded_text(buffer_, static_cast<std::size_t>(width_));
  std::size_t done = 0;
  if (!buffer_.empty()) clear_progress();
  while (done < buffer_.size()) {
    ssize_t n = ::write(STDOUT_FILENO, buffer_.data() + done, buffer_.size() - done);
    if (n >= 0) {
      stdout_used = true;
      done += static_cast<std::size_t>(n);
    } else if (errno == EPIPE) {
      reader_gone = true;
      break;
    } else if (errno != EINTR) {
      throw Error(Code::kWriteFailed, cat("cannot write to stdout: ", std::strerror(errno)));
    }
  }
  if (terminal_ && !buffer_.empty()) leave_line_open(buffer_.back() != '\n');
  buffer_.clear();
}

bool Output::has_written() { return stdout_used; }

void Output::keep_lines() { width_ = kNoTerminal; }

std::string Output::styled(Style style, std::string_view text) const { return paint(color_, style, text); }

std::string paint(bool color, Style style, std::string_view text) {
  static constexpr const char* kCodes[] = {"", "1", "2", "1;31", "32", "33", "36"};
  if (!color || style == Style::kPlain) return std::string(text);
  return cat("\x1b[", kCodes[static_cast<int>(style)], "m", text, "\x1b[0m");
}

bool stderr_color(const GlobalFlags& flags) { return want_color(flags.color, STDERR_FILENO); }
std::optional<int> stderr_width() { return terminal_width(STDERR_FILENO); }

void note(const GlobalFlags& flags, std::string_view text) {
  if (!flags.quiet && this_job().rank() == 0) to_stderr(cat(with_flags(text), "\n"));
}

void warn(const GlobalFlags& flags, std::string_view text) {
  if (this_job().rank() != 0) return;
  to_stderr(cat(paint(stderr_color(flags), Style::kYellow, "warning"), ": ", with_flags(text), "\n"));
}

void complain(std::string_view text) { to_stderr(cat(text, "\n")); }

void print_error(const GlobalFlags& flags, const Error& e) {
  bool color = stderr_color(flags);
  std::string out = cat(paint(color, Style::kRed, cat("error[", code_name(e.code()), "]")), ": ",
                        with_flags(e.message()), "\n");
  if (!e.file().empty()) out += cat("  --> ", escaped(e.file(), 4096), "\n");
  if (!e.tensor().empty()) out += cat("   | tensor   ", escaped(e.tensor()), "\n");
  if (e.offset() >= 0) out += cat("   | at byte  ", with_commas(e.offset()), "\n");
  if (!e.expected().empty()) out += cat("   | expected ", with_flags(e.expected()), "\n");
  if (!e.found().empty()) out += cat("   | found    ", with_flags(e.found()), "\n");
  for (const std::string& text : e.notes()) out += cat("   = ", with_flags(text), "\n");
  if (!e.help().empty()) out += cat(paint(color, Style::kGreen, "help"), ": ", with_flags(e.help()), "\n");
  std::string_view more = e.help().empty() ? "" : "      more: ";
  if (more.empty()) out += cat(paint(color, Style::kGreen, "help"), ": ");
  out += cat(more, "mckpt explain ", code_name(e.code()), "\n");
  to_stderr(out);
}

// Nothing is called 0 or 100 % that is not.
std::string percent(std::int64_t part, std::int64_t whole) {
  if (part == whole) return "100 %";
  double share = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  if (part != 0 && share < 0.05) return "<0.1 %";
  if (share > 99.95) return ">99.9 %";
  char text[16];
  std::snprintf(text, sizeof text, "%.1f %%", share);
  return text;
}

std::string human_rate(std::int64_t bytes, double seconds) {
  double rate = static_cast<double>(bytes) / std::max(seconds, 1e-9);
  return cat(human_bytes(static_cast<std::int64_t>(std::min(rate, 1e18))), "/s");
}

}  // namespace mckpt::impl
