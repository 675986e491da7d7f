// After which errors the same plan can go on.
#include "io/output/unfinished.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "io/file/file.h"
#include "tests/support/temp_folder.h"

namespace mckpt::impl {
namespace unfinished_test {

TEST(CanGoOnAfter, AReadThatFailedAtThisMoment) {
  EXPECT_TRUE(can_go_on_after(Error(Code::kReadFailed, "").of_the_moment()));
  // Whatever else the error says: a help or a number decides nothing.
  EXPECT_TRUE(can_go_on_after(Error(Code::kReadFailed, "").of_the_moment().expected(1).help("try again")));
  EXPECT_FALSE(can_go_on_after(Error(Code::kReadFailed, "the file was changed")));
}

TEST(CanGoOnAfter, NotAfterAFileThatIsNotWhatItWas) {
  TempFolder folder;
  InputFile file(folder.put("a", "1234"));
  std::vector<u8> more(5);
  try {
    file.read(0, more);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kReadFailed);
    EXPECT_FALSE(can_go_on_after(e));
  }
}

TEST(CanGoOnAfter, ErrorsThatAreNotOfTheInput) {
  EXPECT_TRUE(can_go_on_after(Error(Code::kNoRoom, "")));
  EXPECT_TRUE(can_go_on_after(Error(Code::kOutOfMemory, "")));
  EXPECT_FALSE(can_go_on_after(Error(Code::kBadJson, "")));
}

}  // namespace unfinished_test
}  // namespace mckpt::impl
