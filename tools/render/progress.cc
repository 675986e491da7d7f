// Draws progress from a thread of its own, which reads a counter that the workers increase:
//
//   convert  [########------------]  3.20 GiB of 8.00 GiB  40 %  1.10 GiB/s  ETA 0:04  memory 310 MiB
//
// The bar is drawn on a terminal alone, if the line has room for it.
// The first line comes after 200 ms on a terminal and after 10 s in a log, so short work shows nothing. Work
// that counts no bytes shows on a terminal how long it has taken. If no thread can be started, the work goes
// on without progress.
#include "tools/render/progress.h"

#include <cstdio>
#include <cstdlib>
#include <system_error>

#include "core/base/text.h"
#include "runtime/job/job.h"
#include "tools/process/job.h"
#include "tools/render/output.h"

namespace mckpt::impl {
namespace {

constexpr std::chrono::milliseconds kFirst{200}, kWaitingFirst{400}, kBarStep{100}, kPlainStep{10'000},
    kJsonStep{1'000};

// The line of the terminal that progress is drawn on. Texts are written by other threads.
struct TerminalLine {
  std::mutex mutex;
  bool drawn = false, open = false;
  int bars = 0;  // progresses under way that count bytes, drawn or not
  std::string phase;

  void clear() {
    if (drawn) std::fputs("\r\x1b[K", stderr);
    if (drawn) std::fflush(stderr);
    drawn = false;
  }
};

TerminalLine& terminal_line() {
  static TerminalLine line;
  return line;
}

// Minutes and seconds: "75:03".
std::string clock_text(double seconds) {
  i64 s = static_cast<i64>(seconds);
  char text[32];
  std::snprintf(text, sizeof text, "%lld:%02lld", static_cast<long long>(s / 60),
                static_cast<long long>(s % 60));
  return text;
}

}  // namespace

i64 status_bytes(std::string_view name) {
  i64 kib = 0;
  if (std::FILE* f = std::fopen("/proc/self/status", "r")) {
    std::string start = cat(name, ":");
    char text[256];
    while (std::fgets(text, sizeof text, f))
      if (std::string_view(text).starts_with(start)) kib = std::strtol(text + start.size(), nullptr, 10);
    std::fclose(f);
  }
  return kib * 1024;
}

void clear_progress() {
  std::lock_guard lock(terminal_line().mutex);
  terminal_line().clear();
}

void leave_line_open(bool open) {
  std::lock_guard lock(terminal_line().mutex);
  terminal_line().open = open;
}

void say_phase(std::string phase) {
  std::lock_guard lock(terminal_line().mutex);
  terminal_line().phase = std::move(phase);
}

Progress::Progress(const GlobalFlags& flags, std::string what, i64 total_bytes)
    : Progress(flags, std::move(what), total_bytes, false) {}

Progress::Progress(const GlobalFlags& flags, std::string command, Waiting)
    : Progress(flags, std::move(command), 0, true) {}

Progress::Progress(const GlobalFlags& flags, std::string what, i64 total_bytes, bool waiting)
    : how_(How::kNone),
      color_(stderr_color(flags)),
      waiting_(waiting),
      what_(std::move(what)),
      total_bytes_(total_bytes) {
  bool terminal = stderr_width().has_value();
  if (flags.progress == "bar" || (flags.progress == "auto" && terminal)) how_ = How::kBar;
  if (flags.progress == "plain" || (flags.progress == "auto" && !terminal)) how_ = How::kPlain;
  if (flags.progress == "json") how_ = How::kJson;
  if (flags.quiet || this_job().rank() != 0) how_ = How::kNone;
  if (waiting_ && how_ != How::kBar) how_ = How::kNone;
  if (how_ == How::kNone) return;
  if (!waiting_) {
    std::lock_guard lock(terminal_line().mutex);
    terminal_line().bars++;
  }
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    how_ = How::kNone;  // no thread to be had; the work goes on without
  }
}

Progress::~Progress() {
  if (how_ != How::kNone && !waiting_) {
    std::lock_guard lock(terminal_line().mutex);
    terminal_line().bars--;
  }
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
  if (how_ == How::kBar) clear_progress();
}

void Progress::run() {
  std::unique_lock lock(mutex_);
  // A bar and JSON show soon that something happens; a log needs no line for what takes a moment.
  Clock::duration step = how_ == How::kPlain ? Clock::duration(kPlainStep) : Clock::duration(kFirst);
  if (waiting_) step = kWaitingFirst;
  while (!wake_.wait_for(lock, step, [&] { return stop_; })) {
    double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
    if (how_ == How::kBar) {
      draw(seconds);
    } else {
      complain(how_ == How::kJson ? json_line(seconds) : line(seconds));
    }
    step = how_ == How::kBar ? kBarStep : how_ == How::kPlain ? kPlainStep : kJsonStep;
  }
}

void Progress::draw(double seconds) {
  TerminalLine& screen = terminal_line();
  std::lock_guard lock(screen.mutex);
  if (screen.open || (waiting_ && screen.bars > 0)) return;
  // A line that wraps could not be cleared.
  const std::size_t room = static_cast<std::size_t>(stderr_width().value_or(1000)) - 1;
  std::string text = line(seconds);
  if (const std::string drawn = bar(); text.size() + drawn.size() <= room) text.insert(what_.size(), drawn);
  text.resize(std::min(text.size(), room));
  std::string_view rest = std::string_view(text).substr(std::min(what_.size(), text.size()));
  std::fputs(cat("\r\x1b[K", paint(color_, Style::kBold, what_), rest).c_str(), stderr);
  std::fflush(stderr);
  screen.drawn = true;
}

// "  [########------------]"; "" where the amount of work is not known.
std::string Progress::bar() const {
  constexpr std::size_t kCells = 20;
  if (waiting_ || total_bytes_ <= 0) return "";
  const double share = static_cast<double>(done_bytes_) / static_cast<double>(total_bytes_);
  const auto full = std::min(kCells, static_cast<std::size_t>(share * static_cast<double>(kCells)));
  return cat("  [", std::string(full, '#'), std::string(kCells - full, '-'), "]");
}

// pre: the line of the terminal is locked, if waiting_
std::string Progress::line(double seconds) const {
  if (waiting_) {
    const std::string& phase = terminal_line().phase;
    return cat(what_, phase.empty() ? "" : cat(": ", phase), "  ", clock_text(seconds), "  memory ",
               human_bytes(status_bytes("RssAnon")));
  }
  i64 done = done_bytes_;
  double rate = static_cast<double>(done) / seconds;
  std::string out = cat(what_, "  ", human_bytes(done));
  if (total_bytes_ > 0) {
    i64 percent = static_cast<i64>(100.0 * static_cast<double>(done) / static_cast<double>(total_bytes_));
    out += cat(" of ", human_bytes(total_bytes_), "  ", percent, " %");
  }
  out += cat("  ", human_rate(done, seconds));
  if (total_bytes_ > done && rate > 0)
    out += cat("  ETA ", clock_text(static_cast<double>(total_bytes_ - done) / rate));
  return cat(out, "  memory ", human_bytes(status_bytes("RssAnon")));
}

std::string Progress::json_line(double seconds) const {
  return cat("{\"schema\": \"mckpt.progress/1\", \"command\": \"", what_,
             "\", \"bytes\": ", done_bytes_.load(), ", \"total_bytes\": ", total_bytes_,
             ", \"seconds\": ", seconds, ", \"memory\": ", status_bytes("RssAnon"), "}");
}

}  // namespace mckpt::impl
