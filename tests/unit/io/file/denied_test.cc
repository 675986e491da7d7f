#include "io/file/denied.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "core/base/error.h"
#include "io/file/file.h"
#include "io/file/folder.h"
#include "tests/support/temp_folder.h"

namespace mckpt::impl {
namespace denied_test {
namespace {

constexpr uid_t kNobody = 65534;

// root may read everything: as root, the functions are called as another user.
class AsSomebody {
 public:
  AsSomebody() : root_(::geteuid() == 0) {
    if (root_ && ::seteuid(kNobody) != 0) ADD_FAILURE();
  }
  ~AsSomebody() {
    if (root_ && ::seteuid(0) != 0) ADD_FAILURE();
  }

 private:
  bool root_;
};

template <typename Work>
Error error_of(Work&& work) {
  AsSomebody somebody;
  try {
    work();
  } catch (const Error& e) {
    return e;
  }
  return Error(Code::kUsage, "nothing was thrown");
}

// The owner is root, or the user who runs the tests: what is his own he can change himself.
std::string help_of(const char* right, const std::string& path) {
  return ::geteuid() == 0
             ? cat("ask the owner for `chmod a+", right, " ", path, "`, or run mckpt as the owner")
             : cat("`chmod u+", right, " ", path, "` gives this right");
}

TEST(Denied, NamesTheFileOrTheFolderAndTheMode) {
  TempFolder t;
  ::chmod(t.path().c_str(), 0755);
  const std::string file = t.put("open/file", "x"), below = t.put("closed/below/file", "x"),
                    unlisted = t.at("unlisted");
  std::filesystem::create_directory(unlisted);
  std::filesystem::create_symlink(below, t.at("link"));
  ::chmod(file.c_str(), 0200), ::chmod(t.at("closed").c_str(), 0640), ::chmod(unlisted.c_str(), 0);
  const std::string by =
      cat(", owner uid ", ::geteuid(), "; mckpt runs as uid ", ::geteuid() == 0 ? kNobody : ::geteuid());

  Error of_file = error_of([&] { InputFile opened(file); });
  EXPECT_EQ(of_file.code(), Code::kReadFailed);
  EXPECT_EQ(of_file.expected(), "the right to read the file " + file);
  EXPECT_EQ(of_file.found(), "mode 0200" + by);
  EXPECT_EQ(of_file.help(), help_of("r", file));

  Error of_parent = error_of([&] { InputFile opened(below); });
  EXPECT_EQ(of_parent.file(), below);
  EXPECT_EQ(of_parent.expected(), "the right to enter the folder " + t.at("closed"));
  EXPECT_EQ(of_parent.found(), "mode 0640" + by);
  EXPECT_EQ(of_parent.help(), help_of("x", t.at("closed")));

  Error of_folder = error_of([&] { Folder opened(unlisted); });
  EXPECT_EQ(of_folder.found(), "mode 0000" + by);
  EXPECT_EQ(of_folder.help(), help_of("rx", unlisted));
  EXPECT_EQ(error_of([&] { InputFile opened(t.at("link")); }).help(), of_parent.help());

  // Rights that would do: the file system itself refuses.
  Error other(Code::kReadFailed, "");
  explain_denied(other, t.put("open/free", "x"), EACCES);
  EXPECT_NE(other.found().find("which allows it"), std::string::npos);
  Error none(Code::kReadFailed, "");
  explain_denied(none, file, EIO);
  EXPECT_EQ(none.help() + none.found(), "");
  ::chmod(t.at("closed").c_str(), 0755), ::chmod(unlisted.c_str(), 0755);
}

}  // namespace
}  // namespace denied_test
}  // namespace mckpt::impl
