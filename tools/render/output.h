// Where a command's text goes: the answer to stdout through Output, everything else to stderr through note()
// and warn(). Colour and drawing characters are decided here, once.
//
//   stdout   the answer, and nothing else: text, or JSON with --json    Output
//   stderr   notes (silent under -q), warnings, errors, progress        note(), warn(), print_error(), Progress
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mckpt::impl {

class Error;

// --color: whether colour codes are written.
enum class When { kAuto, kAlways, kNever };
enum class Style { kPlain, kBold, kDim, kRed, kGreen, kYellow, kCyan };

// Flags that every command takes.
struct GlobalFlags {
  bool json = false;
  bool jsonl = false;
  bool quiet = false;
  bool ascii = false;
  int verbose = 0;
  When color = When::kAuto;
  std::string progress = "auto";
};

// Thrown when the reader of stdout has closed it, as in `mckpt ls ckpt | head`; main ends quietly.
struct BrokenPipe {};

// Buffered stdout. Throws BrokenPipe, or Error(kWriteFailed) when stdout cannot take what is written.
class Output {
 public:
  explicit Output(const GlobalFlags& flags);
  void write(std::string_view text);
  void line(std::string_view text) {
    write(text);
    write("\n");
  }
  void flush();
  // From here on no line is broken: for what is copied or fed to another program.
  void keep_lines();
  // The text that has not been flushed yet, for writers that append to a text themselves.
  std::string& buffer() { return buffer_; }
  // Whether this process has put anything on stdout.
  static bool has_written();

  // The text wrapped in colour codes, or as it is where colour is off.
  std::string styled(Style style, std::string_view text) const;
  bool json() const { return json_; }
  bool unicode() const { return unicode_; }  // false: draw with ASCII only
  int width() const { return width_; }       // columns of the terminal; a large number in a pipe

 private:
  std::string buffer_;
  bool color_, unicode_, json_, terminal_;
  int width_;
};

bool stderr_color(const GlobalFlags& flags);
// The columns of the terminal if stderr is one; none otherwise.
std::optional<int> stderr_width();
std::string paint(bool color, Style style, std::string_view text);

// One line on stderr, from rank 0 alone, because all ranks have the same to report. note() is silent under
// -q.
void note(const GlobalFlags& flags, std::string_view text);
void warn(const GlobalFlags& flags, std::string_view text);

// One line on stderr, whatever the flags.
void complain(std::string_view text);

// The error as a person reads it (rustc's shape), on stderr.
void print_error(const GlobalFlags& flags, const Error& error);

std::string percent(std::int64_t part, std::int64_t whole);  // "12.5 %"; "<0.1 %" where it is not 0
std::string human_rate(std::int64_t bytes, double seconds);  // "1.2 GiB/s"

}  // namespace mckpt::impl
