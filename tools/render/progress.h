// The progress of long work, on stderr: a line that is redrawn on a terminal, a plain line every 10 seconds
// elsewhere, or JSON lines. Work that is over at once shows nothing.
//
//   {"schema": "mckpt.progress/1", "command": "verify", "bytes": 1073741824, "total_bytes": 4294967296,
//    "seconds": 2.1, "memory": 8388608}
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "core/base/int.h"

namespace mckpt::impl {

struct GlobalFlags;

// A field of /proc/self/status in bytes, such as "RssAnon", the memory that this process does not share; 0 if
// the system does not provide the field.
i64 status_bytes(std::string_view name);

// Removes the line of progress from the terminal, for a text that is written there next.
void clear_progress();
// Says that the last text on the terminal did not end its line: no progress is drawn there until one does.
void leave_line_open(bool open);
// Names the command's work in one word, for a line that shows no bytes: "sync". "": nothing special.
void say_phase(std::string phase);

// Shows progress from the constructor to the destructor. Only rank 0 of a job shows any, and none under -q.
class Progress {
 public:
  // `what` is one word: "verify". `total_bytes` 0: not known.
  Progress(const GlobalFlags& flags, std::string what, i64 total_bytes);
  // Shows on a terminal how long the command has been at work, while no other progress is shown.
  struct Waiting {};
  Progress(const GlobalFlags& flags, std::string command, Waiting);
  ~Progress();  // clears the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Thread-safe.
  void add(i64 bytes) { done_bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  // For workers that count by themselves.
  std::atomic<i64>* counter() { return &done_bytes_; }

 private:
  enum class How { kNone, kBar, kPlain, kJson };
  using Clock = std::chrono::steady_clock;

  Progress(const GlobalFlags& flags, std::string what, i64 total_bytes, bool waiting);
  void run();
  void draw(double seconds);
  std::string line(double seconds) const;
  std::string bar() const;
  std::string json_line(double seconds) const;

  How how_;
  bool color_, waiting_;
  std::string what_;
  i64 total_bytes_;
  Clock::time_point begin_ = Clock::now();
  std::atomic<i64> done_bytes_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace mckpt::impl
