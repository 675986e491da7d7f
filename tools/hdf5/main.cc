// mckpt-hdf5: opens the HDF5 file that is its standard input and answers on its standard output what is in it
// and where; or composes the file that a request wants (io/hdf5/wire.h). mckpt starts it; data are read and
// written by mckpt.
//
//   mckpt-hdf5 SUPERBLOCK_OFFSET CPU_MS <file >answer
//   mckpt-hdf5 compose CPU_MS <request >layout
//   mckpt-hdf5 version
//
// The HDF5 library is written for files that mean well, so it runs in a sandbox. The order of run() matters:
// the library is loaded first, with all that it needs of the system, then every right is given up, and only
// then the first byte of the file is read.
//
//   mckpt --start--> mckpt-hdf5: load library, enter sandbox, walk the file --answer--> mckpt: check, read data
//
// Exit status: 0 answered, kExitUsage, kExitNoSandbox (with what the system refused), 1 for anything else.
// The kernel ends the process for a forbidden call or when its time is used up; mckpt then reports that.
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <string>

#include "hdf5/answer.h"
#include "hdf5/compose.h"
#include "hdf5/fd_driver.h"
#include "hdf5/memory_driver.h"
#include "hdf5/sandbox.h"
#include "hdf5/walk.h"

namespace mckpt::impl {
namespace {

constexpr long kMemoryBytes = 1L << 30;

// False when the text is not all digits.
bool parse(const char* text, std::int64_t& to) {
  const char* end = text + std::strlen(text);
  auto [at, error] = std::from_chars(text, end, to);
  return error == std::errc() && at == end && to >= 0;
}

bool write_all(std::string_view text) {
  return ::write(STDOUT_FILENO, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

std::string version() {
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
}

// Everything that the library loads by itself is loaded here, and nothing later: no plug-in, no message of
// its own.
bool start_library() {
  return H5open() >= 0 && H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr) >= 0 && H5PLset_loading_state(0) >= 0;
}

void answer(hid_t access) {
  Answer out;
  // The name is not looked at; one that is absolute keeps the library from asking for the working folder.
  hid_t file = H5Fopen("/input", H5F_ACC_RDONLY, access);
  if (file < 0) {
    out.fault("", hdf5_wire::Blame::kDamaged, library_words());
  } else {
    answer_file(out, file);
  }
  out.finish();
}

int run(int count, char** arguments) {
  bool only_version = count == 2 && std::string_view(arguments[1]) == "version";
  bool composes = count == 3 && std::string_view(arguments[1]) == "compose";
  std::int64_t superblock = 0, cpu_ms = 10'000;
  bool known = only_version ||
               (count == 3 && (composes || parse(arguments[1], superblock)) && parse(arguments[2], cpu_ms));
  if (!known) return hdf5_wire::kExitUsage;
  hid_t access = start_library() ? input_access(superblock) : -1;
  hid_t memory = access >= 0 && composes ? memory_access() : access;
  if (memory < 0) return 1;
  if (access < 0) return 1;
  if (const char* refused = enter_sandbox({kMemoryBytes, static_cast<long>(cpu_ms)})) {
    write_all(refused);
    return hdf5_wire::kExitNoSandbox;
  }
  if (only_version) return write_all(version()) ? 0 : 1;
  if (composes) {
    Answer out(hdf5_wire::kLayoutMagic);
    compose(out, whole_input(), memory);
  } else {
    answer(access);
  }
  return 0;
}

}  // namespace
}  // namespace mckpt::impl

// Ends without cleaning up: the library would close what is closed with the process.
int main(int count, char** arguments) { ::_exit(mckpt::impl::run(count, arguments)); }
