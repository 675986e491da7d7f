// Output goes to memory files, which cannot fill up and stop the child as a pipe can.
#include "tools/process/python.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "core/base/error.h"
#include "core/base/text.h"
#include "io/file/file.h"

namespace mckpt::impl {
namespace {

// Python puts the current folder in front of its path where the program is an argument.
constexpr std::string_view kWithoutFolder = "import sys\nif sys.path and not sys.path[0]: del sys.path[0]\n";
// Variables by which launchers tell a process that it is a rank.
constexpr std::string_view kOfLaunchers[] = {"OMPI_", "PMIX_", "PMI_", "PRTE_", "HYDRA_", "MPI_LOCAL"};
constexpr std::string_view kOffline = "HF_HUB_OFFLINE=1";  // the models are in folders

class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("mckpt-python", MFD_CLOEXEC)) {
    if (fd_ < 0) throw Error(Code::kReadFailed, "no file in memory can be made").found(errno_text(errno));
  }
  MemoryFile(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(fd_); }
  int fd() const { return fd_; }

  std::string text() const {
    std::string text;
    std::array<char, 4096> some;
    for (ssize_t n; (n = ::pread(fd_, some.data(), some.size(), static_cast<off_t>(text.size()))) > 0;)
      text.append(some.data(), static_cast<std::size_t>(n));
    return text;
  }

 private:
  int fd_;
};

std::vector<std::string> environment() {
  std::vector<std::string> out;
  for (char** one = environ; *one; one++)
    if (std::string_view variable = *one; std::ranges::none_of(
            kOfLaunchers, [&](std::string_view front) { return variable.starts_with(front); }))
      if (!variable.starts_with(kOffline.substr(0, kOffline.find('=') + 1))) out.emplace_back(variable);
  out.emplace_back(kOffline);
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

pid_t start(std::vector<std::string> words, const MemoryFile& output, const MemoryFile& errors) {
  std::vector<std::string> variables = environment();
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, output.fd(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, errors.fd(), STDERR_FILENO);
  pid_t child = -1;
  const int error = ::posix_spawnp(&child, words[0].c_str(), &actions, nullptr, pointers(words).data(),
                                   pointers(variables).data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    throw Error(Code::kModuleMissing, "Python cannot be started")
        .file(words[0])
        .found(errno_text(error))
        .help("--python names the one to use");
  return child;
}

int wait_for(pid_t child, const std::function<bool()>& keep_on) {
  for (int status = 0;; std::this_thread::sleep_for(std::chrono::milliseconds(20))) {
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child && !keep_on())  // the signal that ended Python was for both
      throw Error(Code::kInterrupted, "Python was stopped before it was done");
    if (ended == child) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (ended < 0 && errno != EINTR)
      throw Error(Code::kReadFailed, "it is not known how Python ended").found(errno_text(errno));
    if (keep_on()) continue;
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    throw Error(Code::kInterrupted, "Python was stopped before it was done");
  }
}

}  // namespace

std::string find_python(const std::optional<std::string>& told) {
  if (told) return *told;
  if (const char* variable = std::getenv("MCKPT_PYTHON"); variable && *variable) return variable;
  std::error_code failed;
  std::filesystem::path beside =
      std::filesystem::canonical("/proc/self/exe", failed).parent_path() / "python3";
  return !failed && ::access(beside.c_str(), X_OK) == 0 ? beside.string() : "python3";
}

std::string PythonRun::last_error() const {
  std::string_view rest = errors;
  while (!rest.empty() && (rest.back() == '\n' || rest.back() == ' ')) rest.remove_suffix(1);
  const std::size_t line = rest.rfind('\n');
  return std::string(line == rest.npos ? rest : rest.substr(line + 1));
}

PythonRun run_python(const std::string& python, std::string_view script,
                     const std::vector<std::string>& arguments, const std::function<bool()>& keep_on) {
  MemoryFile output, errors;
  std::vector<std::string> words = {python, "-c", cat(kWithoutFolder, script)};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const int status = wait_for(start(std::move(words), output, errors), keep_on);
  return {status, output.text(), errors.text()};
}

}  // namespace mckpt::impl
