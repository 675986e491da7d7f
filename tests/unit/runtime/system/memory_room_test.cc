#include "runtime/system/memory_room.h"

#include <gtest/gtest.h>

#include <map>

#include "core/base/error.h"
#include "tests/support/temp_folder.h"

namespace mckpt::impl::memory_room_test {
namespace {

using Files = std::map<std::string, std::string>;

MemoryRoom room_of(const Files& files) {
  TempFolder root;
  for (const auto& [name, text] : files) root.put(name.substr(1), text);
  return memory_room(root.path());
}

const Files kMachine = {{"/proc/meminfo", "MemTotal:  999 kB\nMemAvailable:     100 kB\n"}};

Files with(Files more) {
  more.insert(kMachine.begin(), kMachine.end());
  return more;
}

TEST(MemoryRoom, IsTheLeastOfTheMachineAndEveryLimit) {
  struct Case {
    const char* name;
    Files files;
    i64 bytes;
  };
  const Case cases[] = {
      {"nothing is told", {}, -1},
      {"a machine", kMachine, 102400},
      {"a machine that swaps", {{"/proc/meminfo", "MemAvailable:     100 kB\nSwapFree: 11 kB\n"}}, 113664},
      {"a group without a limit",
       with({{"/proc/self/cgroup", "0::/job\n"},
             {"/sys/fs/cgroup/job/memory.max", "max\n"},
             {"/sys/fs/cgroup/job/memory.current", "500\n"}}),
       102400},
      {"a group with a limit",
       with({{"/proc/self/cgroup", "0::/job\n"},
             {"/sys/fs/cgroup/job/memory.max", "9000\n"},
             {"/sys/fs/cgroup/job/memory.current", "500\n"}}),
       8500},
      {"files in the page cache are as good as free",
       with({{"/proc/self/cgroup", "0::/job\n"},
             {"/sys/fs/cgroup/job/memory.max", "9000\n"},
             {"/sys/fs/cgroup/job/memory.current", "8500\n"},
             {"/sys/fs/cgroup/job/memory.stat", "anon 1\nfile 7777\ninactive_file 300\nactive_file 20\n"}}),
       820},
      {"an outer group with a lower one",
       with({{"/proc/self/cgroup", "0::/user/job\n"},
             {"/sys/fs/cgroup/user/memory.max", "7000\n"},
             {"/sys/fs/cgroup/user/memory.current", "6000\n"},
             {"/sys/fs/cgroup/user/job/memory.max", "9000\n"},
             {"/sys/fs/cgroup/user/job/memory.current", "500\n"}}),
       1000},
      {"a container that sees its own group as the root",
       with({{"/proc/self/cgroup", "4:memory:/docker/0123\n3:cpu:/\n0::/\n"},
             {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "5000\n"},
             {"/sys/fs/cgroup/memory/memory.usage_in_bytes", "2000\n"},
             {"/sys/fs/cgroup/memory/memory.stat",
              "inactive_file 9\ntotal_inactive_file 500\ntotal_active_file 0\n"}}),
       3500},
      {"one that is over its limit",
       with({{"/proc/self/cgroup", "0::/\n"},
             {"/sys/fs/cgroup/memory.max", "9000\n"},
             {"/sys/fs/cgroup/memory.current", "9500\n"}}),
       0},
  };
  for (const Case& c : cases) EXPECT_EQ(room_of(c.files).bytes, c.bytes) << c.name;
}

TEST(MemoryRoom, SaysWhatHasNoMore) {
  EXPECT_EQ(room_of(kMachine).of, "the system");
  EXPECT_NE(room_of(with({{"/proc/self/cgroup", "0::/\n"},
                          {"/sys/fs/cgroup/memory.max", "9000\n"},
                          {"/sys/fs/cgroup/memory.current", "0\n"}}))
                .of.find("control group"),
            std::string::npos);
}

TEST(MemoryRoom, OfThisMachineIsKnown) { EXPECT_GT(memory_room().bytes, 0); }

TEST(MemoryRoom, WhatCannotBeHadIsRefusedWithBothNumbers) {
  constexpr i64 kTooMuch = i64{1} << 60;
  check_memory_room(1 << 20, "little");
  try {
    check_memory_room(kTooMuch, "the weights of a module");
    FAIL() << "so much was promised";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kOutOfMemory);
    EXPECT_EQ(e.message(), "there is not enough memory for the weights of a module");
    EXPECT_EQ(e.expected(), "1152921504606846976 bytes");
    EXPECT_NE(e.found().find(" bytes free, according to "), std::string::npos) << e.found();
  }
}

}  // namespace
}  // namespace mckpt::impl::memory_room_test
