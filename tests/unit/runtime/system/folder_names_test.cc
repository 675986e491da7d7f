#include "runtime/system/folder_names.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <map>

#include "core/base/text.h"
#include "tests/support/temp_folder.h"

namespace mckpt::impl {
namespace {

using Kinds = std::map<std::string, EntryKind>;

Kinds walked(const std::string& folder) {
  Kinds kinds;
  EXPECT_EQ(walk_folder(folder, [&](const std::string& path,
                                    EntryKind kind) { return kinds.emplace(path, kind).second; }),
            0);
  return kinds;
}

// top/ .hidden, pipe, a/b/file, link -> a
TEST(FolderNames, AreOfEveryKindAndNoLinkIsFollowed) {
  TempFolder temp;
  temp.put(".hidden", "x");
  temp.put("a/b/file", "y");
  ASSERT_EQ(::symlink("a", temp.at("link").c_str()), 0);
  ASSERT_EQ(::mkfifo(temp.at("pipe").c_str(), 0600), 0);
  const Kinds top = {{".hidden", EntryKind::kFile},
                     {"a", EntryKind::kFolder},
                     {"link", EntryKind::kLink},
                     {"pipe", EntryKind::kOther}};
  std::vector<ListedEntry> entries;
  EXPECT_EQ(list_folder(temp.path(), entries), 0);
  Kinds listed;
  for (const ListedEntry& e : entries) listed.emplace(e.name, e.kind);
  EXPECT_EQ(listed, top);
  Kinds all = top;
  all.insert({{"a/b", EntryKind::kFolder}, {"a/b/file", EntryKind::kFile}});
  EXPECT_EQ(walked(temp.path()), all);
}

TEST(FolderNames, EndWhereTheVisitorEnds) {
  TempFolder temp;
  for (const char* name : {"a", "b", "c"}) temp.put(name, "");
  int seen = 0;
  EXPECT_EQ(walk_folder(temp.path(), [&](const std::string&, EntryKind) { return ++seen < 2; }), 0);
  EXPECT_EQ(seen, 2);
}

TEST(FolderNames, TellWhyThereAreNone) {
  TempFolder temp;
  temp.put("file", "");
  std::vector<ListedEntry> entries;
  EXPECT_EQ(list_folder(temp.at("no"), entries), ENOENT);
  EXPECT_EQ(list_folder(temp.at("file"), entries), ENOTDIR);
  EXPECT_EQ(list_open_folder(-1, entries), EBADF);
  EXPECT_EQ(walk_folder(temp.at("no"), [](const std::string&, EntryKind) { return true; }), ENOENT);
  EXPECT_TRUE(entries.empty());
}

}  // namespace
}  // namespace mckpt::impl
