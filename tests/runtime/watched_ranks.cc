// A job whose ranks work in step under the watch until one of them meets its fate. watched_ranks.py starts it
// and looks how it ends.
//
// usage: watched_ranks SILENCE_S PHASE_S [RANK FATE]...
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "core/error.h"
#include "runtime/activity.h"
#include "runtime/world.h"

namespace mckpt {
namespace {

constexpr int kRounds = 40, kFatalRound = 10;

std::atomic<bool> asked_to_end = false;

void rest(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

void say(std::string_view what) {
  std::string line = cat("rank ", launch().rank, " ", what, "\n");
  [[maybe_unused]] ssize_t n = write(STDERR_FILENO, line.data(), line.size());
}

void meet_fate(std::string_view fate) {
  if (fate == "kill") raise(SIGKILL);
  if (fate == "stop") raise(SIGSTOP);
  if (fate == "exit") _exit(0);
  if (fate == "throw") throw Error(Code::kReadFailed, "thrown on purpose");
  if (fate == "unknown") throw std::runtime_error("thrown on purpose");
  if (fate == "follow") throw Error(Code::kInterrupted, "thrown on purpose");
  if (fate == "hang")
    for (;;) pause();
  if (fate == "loop")
    for (std::atomic<i64> i = 0;; i++) continue;
  if (fate == "alone") world().barrier();  // which the others do not join
  if (fate == "slow") {
    Phase phase("slow");
    for (int i = 0; i < 120; i++) rest(100), made_progress();
  }
  if (fate == "count") {
    std::atomic<i64> count = 0;
    Phase phase("count", &count);
    for (int i = 0; i < 120; i++) rest(100), count++;
  }
}

void work(std::string_view fate) {
  Phase phase("work");
  for (int round = 0; round < kRounds; round++) {
    rest(5);
    if (round == kFatalRound) meet_fate(fate);
    i64 sum = 1;
    world().all_reduce({&sum, 1}, Reduce::kSum);
  }
}

int run(int argc, char** argv) {
  WatchLimits limits{std::atof(argv[1]), std::atof(argv[2])};
  std::string_view fate;
  for (int i = 3; i + 1 < argc; i += 2)
    if (std::atoi(argv[i]) == launch().rank) fate = argv[i + 1];
  struct sigaction action {};
  action.sa_handler = [](int) { asked_to_end = true; };
  sigaction(SIGTERM, &action, nullptr);
  int status = 7;
  try {
    tell_lost_ranks_by([](const Error& e) { say(cat("reports: ", e.what())); });
    watch_world(limits);
    work(fate);
    leave_world();
    return 0;
  } catch (const Error& e) {
    bool may_follow = e.code() == Code::kInterrupted || e.code() == Code::kRanksFailed;
    abort_world(
        status, [&] { say(cat("tells: ", e.what())); }, may_follow);
  } catch (const std::exception& e) {
    abort_world(status, [&] { say(cat("tells: ", e.what())); });
  }
  return status;
}

}  // namespace
}  // namespace mckpt

int main(int argc, char** argv) { return argc < 3 ? 2 : mckpt::run(argc, argv); }
