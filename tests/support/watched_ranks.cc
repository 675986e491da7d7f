// A job whose ranks work in step under the watch until one of them meets its fate. watched_ranks.py starts it
// and looks how it ends.
//
// usage: watched_ranks TOLD_FILE SILENCE_S PHASE_S [RANK FATE]...   a "follow" waits for the death of the
// last rank
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "runtime/comm/claim.h"
#include "tests/support/job.h"

namespace mckpt::impl {
namespace {

constexpr int kRounds = 40, kFatalRound = 10;

std::vector<i64> pids;  // by rank
std::string shared;     // a file that one rank takes away when it is given up

void rest(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

// Into a file, since mpirun may lose what a job says while it ends.
void tell(const char* path, std::string_view cause) {
  std::string line = cat("rank ", test_job().rank(), ": ", cause, "\n");
  int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
  [[maybe_unused]] ssize_t n = write(fd, line.data(), line.size());
  close(fd);
}

// Waits until every thread of that rank has ended, and with the last of them its connections.
void outlive(int rank) {
  std::string process = cat("/proc/", pids[static_cast<std::size_t>(rank)]);
  for (;; rest(1)) {
    std::ifstream file(process + "/stat");
    std::string stat((std::istreambuf_iterator<char>(file)), {});
    std::size_t name_end = stat.rfind(')');
    if (name_end == std::string::npos) return;
    std::error_code gone;
    std::filesystem::directory_iterator threads(process + "/task", gone);
    if (gone || (stat[name_end + 2] == 'Z' && std::distance(begin(threads), end(threads)) == 1)) return;
  }
}

void meet_fate(std::string_view fate) {
  if (fate == "kill") raise(SIGKILL);
  if (fate == "stop") raise(SIGSTOP);
  if (fate == "exit") _exit(0);
  if (fate == "throw") throw Error(Code::kReadFailed, "thrown on purpose");
  if (fate == "unknown") throw std::runtime_error("thrown on purpose");
  if (fate == "suspect") throw Error(Code::kInterrupted, "thrown on purpose");
  if (fate == "follow") {
    outlive(test_job().size() - 1);
    throw Error(Code::kInterrupted, "thrown on purpose");
  }
  if (fate == "unwind" || fate == "suspect unwinds") {
    struct Shared {
      ~Shared() { std::filesystem::remove(shared), rest(2000); }
    } given_up_last;
    claiming_errors(world(), [&] {
      throw Error(fate == "unwind" ? Code::kReadFailed : Code::kInterrupted, "thrown on purpose");
    });
  }
  if (fate == "miss") {
    while (std::filesystem::exists(shared)) rest(1);
    throw Error(Code::kReadFailed, "what was shared is gone");
  }
  if (fate == "hang")
    for (;;) pause();
  if (fate == "loop")
    for (std::atomic<i64> i = 0;; i++) continue;
  if (fate == "alone") world().barrier();  // which the others do not join
  if (fate == "slow") {
    Phase phase(world().activity(), "slow");
    for (int i = 0; i < 200; i++) rest(100), world().activity().made_progress();
  }
  if (fate == "count") {
    std::atomic<i64> count = 0;
    Phase phase(world().activity(), "count", &count);
    for (int i = 0; i < 200; i++) rest(100), count++;
  }
}

void work(std::string_view fate) {
  Phase phase(world().activity(), "work");
  for (int round = 0; round < kRounds; round++) {
    rest(5);
    if (round == kFatalRound) meet_fate(fate);
    i64 sum = 1;
    world().all_reduce({&sum, 1}, Reduce::kSum);
  }
}

int run(int argc, char** argv) {
  WatchLimits limits{std::atof(argv[2]), std::atof(argv[3])};
  std::string_view fate;
  for (int i = 4; i + 1 < argc; i += 2)
    if (std::atoi(argv[i]) == test_job().rank()) fate = argv[i + 1];
  struct sigaction action {};
  action.sa_handler = [](int) {};  // the launcher asks to end before it kills; the watch is to be first
  sigaction(SIGTERM, &action, nullptr);
  int status = 7;
  try {
    test_job().report_by([argv](const Error& e) { tell(argv[1], e.what()); });
    test_job().watch(limits);
    shared = cat(argv[1], ".shared");
    if (fate.find("unwind") != fate.npos) std::ofstream(shared) << "here";
    pids.resize(static_cast<std::size_t>(world().size()));
    i64 own = getpid();
    world().all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(pids)));
    work(fate);
    test_job().leave();
    return 0;
  } catch (const Error& e) {
    test_job().end(
        status, [&] { tell(argv[1], e.what()); }, may_follow(e.code()));
  } catch (const std::exception& e) {
    test_job().end(
        status, [&] { tell(argv[1], e.what()); }, false);
  }
  return status;
}

}  // namespace
}  // namespace mckpt::impl

int main(int argc, char** argv) { return argc < 4 ? 2 : mckpt::impl::run(argc, argv); }
