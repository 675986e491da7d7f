#include "io/output/host_lock.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <thread>
#include <vector>

#include "tests/support/temp_folder.h"

namespace mckpt::impl {
namespace {

bool is_empty(const TempFolder& folder) { return std::filesystem::is_empty(folder.path()); }

TEST(HostLock, HasOneOwner) {
  TempFolder folder;
  HostLock first, second, other;
  EXPECT_FALSE(HostLock::is_taken(folder.at("out")));
  EXPECT_EQ(first.take(folder.at("out")), 0);
  EXPECT_EQ(first.take(folder.at("out")), 0);
  EXPECT_EQ(second.take(folder.at("out/")), EWOULDBLOCK);
  EXPECT_TRUE(HostLock::is_taken(folder.at("out")));
  EXPECT_EQ(other.take(folder.at("other")), 0);
  first.let_go();
  EXPECT_EQ(second.take(folder.at("out")), 0);
}

TEST(HostLock, LeavesNothing) {
  TempFolder folder;
  {
    HostLock lock;
    EXPECT_EQ(lock.take(folder.at("out")), 0);
    EXPECT_TRUE(std::filesystem::exists(folder.at(".out.mckpt-lock")));
  }
  EXPECT_TRUE(is_empty(folder));
}

TEST(HostLock, TakesOverWhatAKilledRunLeft) {
  TempFolder folder;
  folder.put(".out.mckpt-lock", "");
  EXPECT_FALSE(HostLock::is_taken(folder.at("out")));
  HostLock lock;
  EXPECT_EQ(lock.take(folder.at("out")), 0);
  lock.let_go();
  EXPECT_TRUE(is_empty(folder));
}

TEST(HostLock, FollowsNoLink) {
  TempFolder folder;
  std::filesystem::create_symlink(folder.at("elsewhere"), folder.at(".out.mckpt-lock"));
  HostLock lock;
  EXPECT_EQ(lock.take(folder.at("out")), ELOOP);
  EXPECT_FALSE(std::filesystem::exists(folder.at("elsewhere")));
}

TEST(HostLock, LeavesAFileThatTookItsName) {
  TempFolder folder;
  HostLock lock;
  EXPECT_EQ(lock.take(folder.at("out")), 0);
  std::filesystem::remove(folder.at(".out.mckpt-lock"));
  folder.put(".out.mckpt-lock", "");
  lock.let_go();
  EXPECT_FALSE(is_empty(folder));
}

// An owner removes the name while others have opened it and do not have the lock yet.
TEST(HostLock, HasOneOwnerWhileItsNameComesAndGoes) {
  TempFolder folder;
  std::atomic<int> owners = 0, most = 0, taken = 0;
  auto work = [&] {
    for (int i = 0; i < 300; i++) {
      HostLock lock;
      if (lock.take(folder.at("out")) != 0) continue;
      taken++;
      int now = ++owners;
      if (now > most) most = now;
      std::this_thread::yield();
      owners--;
    }
  };
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; i++) threads.emplace_back(work);
  threads.clear();
  EXPECT_EQ(most, 1);
  EXPECT_GT(taken, 1);
}

TEST(HostLock, IsNotNeededWhereFoldersAreLockedForAll) {
  TempFolder folder;
  EXPECT_FALSE(HostLock::is_needed(folder.at("out")));
}

}  // namespace
}  // namespace mckpt::impl
