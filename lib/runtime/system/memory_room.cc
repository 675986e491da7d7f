// Reads /proc/meminfo, the memory limits of control groups in the kernel's old and new form, and RLIMIT_AS.
#include "runtime/system/memory_room.h"

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>

#include "core/base/error.h"
#include "core/base/text.h"

namespace mckpt::impl {
namespace {

// Smaller needs are not worth reading the files of the system.
constexpr i64 kWorthAsking = i64{64} << 20;

// The number behind a name at the front of a line: "MemAvailable:   123 kB", "inactive_file 456".
std::optional<i64> number_of(const std::string& path, std::string_view name) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(name)) continue;
    std::size_t digits = line.find_first_of("0123456789", name.size());
    i64 v = 0;
    if (digits != line.npos &&
        std::from_chars(line.data() + digits, line.data() + line.size(), v).ec == std::errc{})
      return v;
  }
  return {};
}

// Lowers the room to `bytes` if that is less than the room so far.
void lower(MemoryRoom& room, i64 bytes, std::string_view of) {
  if (room.bytes >= 0 && room.bytes <= bytes) return;
  room.bytes = std::max<i64>(0, bytes);
  room.of = of;
}

// The two forms in which the kernel shows control groups.
struct GroupFiles {
  std::string_view folder, limit, used, cached;
};
constexpr GroupFiles kOldGroups{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                                "total_"};
constexpr GroupFiles kNewGroups{"/sys/fs/cgroup", "memory.max", "memory.current", ""};

// Lowers the room by the limits of a group and of all groups around it. Inside a container the path may be
// the host's path, and the container sees only its last part, as the root; folders that do not exist are
// skipped.
void lower_by_groups(MemoryRoom& room, const std::string& root, const GroupFiles& files, std::string group) {
  for (;;) {
    std::string folder = cat(root, files.folder, group == "/" ? "" : group, "/");
    std::optional<i64> limit = number_of(folder + std::string(files.limit), "");
    std::optional<i64> used = number_of(folder + std::string(files.used), "");
    if (limit && used) {
      i64 cached = number_of(folder + "memory.stat", cat(files.cached, "inactive_file ")).value_or(0) +
                   number_of(folder + "memory.stat", cat(files.cached, "active_file ")).value_or(0);
      lower(room, *limit - *used + cached, "the limit of this container or batch job (control group)");
    }
    if (group.size() <= 1) return;
    group.resize(std::max<std::size_t>(1, group.rfind('/')));
  }
}

}  // namespace

// The least of all limits. Memory of the page cache counts as free: the kernel gives it up when it is asked
// for.
MemoryRoom memory_room(const std::string& root) {
  MemoryRoom room;
  std::string memory = root + "/proc/meminfo";
  if (std::optional<i64> kib = number_of(memory, "MemAvailable:"))
    lower(room, (*kib + number_of(memory, "SwapFree:").value_or(0)) * 1024, "the system");
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    // "4:memory:/path" and "0::/path"
    std::size_t path = line.find(":/");
    if (path == line.npos) continue;
    if (line.starts_with("0::")) lower_by_groups(room, root, kNewGroups, line.substr(path + 1));
    if (line.find(":memory:") != line.npos) lower_by_groups(room, root, kOldGroups, line.substr(path + 1));
  }
  rlimit limit{};
  std::optional<i64> kib = number_of(root + "/proc/self/status", "VmSize:");
  if (kib && getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    lower(room, static_cast<i64>(limit.rlim_cur) - *kib * 1024, "the limit of this shell (ulimit -v)");
  return room;
}

// kOutOfMemory, with the limit that leaves the least.
Error out_of_memory(i64 needed_bytes, std::string_view what) {
  Error e(Code::kOutOfMemory, cat("there is not enough memory for ", what));
  e.expected(cat(needed_bytes, " bytes"));
  if (MemoryRoom room = memory_room(); room.bytes >= 0)
    e.found(cat(room.bytes, " bytes free, according to ", room.of));
  return e;
}

void check_memory_room(i64 needed_bytes, std::string_view what) {
  if (needed_bytes < kWorthAsking) return;
  MemoryRoom room = memory_room();
  if (room.bytes >= 0 && room.bytes < needed_bytes) throw out_of_memory(needed_bytes, what);
}

}  // namespace mckpt::impl
