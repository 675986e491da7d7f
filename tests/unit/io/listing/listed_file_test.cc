#include "io/listing/listed_file.h"

#include <gtest/gtest.h>

#include "core/base/text.h"
#include "io/file/folder.h"
#include "tests/support/temp_folder.h"

namespace mckpt::impl::listed_file_test {
namespace {

// printf hello | sha256sum, and | git hash-object --stdin
const std::string kHello = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
constexpr std::string_view kGitHello = "b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0";

const FileList kList{"LIST", Code::kBadManifest, Code::kIncomplete, "copy it again"};

std::string said(const std::optional<Finding>& f) {
  return f ? cat(code_name(f->code), " ", f->file, ": ", f->message, " (", f->help, ")") : "as listed";
}

TEST(ListedFile, IsComparedBySizeAndThenBySum) {
  TempFolder made;
  made.put("a", "hello");
  made.put("in/b", "");
  const Folder folder(made.path());
  const std::string a = "a", b = "in/b", gone = "gone", hidden = ".gone", other(64, '0');
  const std::pair<ListedFile, std::string> kCases[] = {
      {{a}, "as listed"},
      {{a, 5}, "as listed"},
      {{a, 5, kHello}, "as listed"},
      {{b, 0}, "as listed"},
      {{a, 4, other}, "MC1314 a: the file has 5 bytes, but LIST says 4 (copy it again)"},
      {{a, 5, other},
       cat("MC1314 a: the file's SHA-256 is ", kHello, ", but LIST says ", other, " (copy it again)")},
      {{gone, 5}, "MC1302 gone: the file is missing, but LIST lists it (copy it again)"},
      {{hidden},
       "MC1302 .gone: the file is missing, but LIST lists it: lost in copying, `*` leaves out names that "
       "begin with a dot (copy it again)"},
  };
  for (const auto& [listed, want] : kCases) EXPECT_EQ(said(unlike_listed(folder, listed, kList)), want);
}

TEST(ListedFile, HasSumsThatAreComputedOnce) {
  TempFolder made;
  const InputFile file(made.put("a", "hello"));
  i64 read = 0;
  FileSum sum(file, [&](i64 bytes) { read += bytes; });
  EXPECT_EQ(sum.sha256(), kHello);
  EXPECT_EQ(sum.sha256(), kHello);
  EXPECT_EQ(read, 5);
  EXPECT_EQ(sum.git_sha1(), kGitHello);
  EXPECT_EQ(sum.git_sha1(), kGitHello);
  EXPECT_EQ(read, 10);
}

}  // namespace
}  // namespace mckpt::impl::listed_file_test
