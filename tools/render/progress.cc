// Draws progress from a thread of its own, which reads a counter that the workers increase:
//
//   convert  3.20 GiB of 8.00 GiB  40 %  1.10 GiB/s  ETA 0:04  memory 310 MiB
//
// The first line comes after 200 ms on a terminal and after 10 s in a log, so short work shows nothing. If no
// thread can be started, the work goes on without progress.
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

constexpr std::chrono::milliseconds kFirst{200}, kBarStep{100}, kPlainStep{10'000}, kJsonStep{1'000};

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

Progress::Progress(const GlobalFlags& flags, std::string what, i64 total_bytes)
    : how_(How::kNone), color_(stderr_color(flags)), what_(std::move(what)), total_bytes_(total_bytes) {
  bool terminal = stderr_width().has_value();
  if (flags.progress == "bar" || (flags.progress == "auto" && terminal)) how_ = How::kBar;
  if (flags.progress == "plain" || (flags.progress == "auto" && !terminal)) how_ = How::kPlain;
  if (flags.progress == "json") how_ = How::kJson;
  if (flags.quiet || this_job().rank() != 0) how_ = How::kNone;
  if (how_ == How::kNone) return;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    how_ = How::kNone;  // no thread to be had; the work goes on without
  }
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
  if (how_ == How::kBar && shown_) std::fputs("\r\x1b[K", stderr);
}

void Progress::run() {
  std::unique_lock lock(mutex_);
  // A bar and JSON show soon that something happens; a log needs no line for what takes a moment.
  Clock::duration step = how_ == How::kPlain ? Clock::duration(kPlainStep) : Clock::duration(kFirst);
  while (!wake_.wait_for(lock, step, [&] { return stop_; })) {
    double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
    if (how_ == How::kBar) {
      // A line that wraps could not be cleared.
      std::string text = line(seconds).substr(0, static_cast<std::size_t>(stderr_width().value_or(1000)) - 1);
      std::string_view rest = std::string_view(text).substr(std::min(what_.size(), text.size()));
      std::fputs(cat("\r\x1b[K", paint(color_, Style::kBold, what_), rest).c_str(), stderr);
      std::fflush(stderr);
    } else {
      complain(how_ == How::kJson ? json_line(seconds) : line(seconds));
    }
    shown_ = true;
    step = how_ == How::kBar ? kBarStep : how_ == How::kPlain ? kPlainStep : kJsonStep;
  }
}

std::string Progress::line(double seconds) const {
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
