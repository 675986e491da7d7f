#include "io/hdf5/helper.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>

#include "tests/support/throws.h"

namespace mckpt::impl {
namespace {

// The answer of a program in the helper's place, or the error.
std::string answer(const std::string& script, HelperLimits limits = {1 << 16, 30}) {
  int input = ::open("/dev/null", O_RDONLY);
  std::string out;
  std::string failure = thrown_by([&] {
    std::vector<u8> bytes = helper_output("/bin/sh", {"-c", script}, input, limits);
    out.assign(bytes.begin(), bytes.end());
  });
  ::close(input);
  return failure == "nothing" ? out : failure;
}

TEST(Hdf5Helper, GivesItsOutput) {
  EXPECT_EQ(answer("printf answer"), "answer");
  EXPECT_EQ(answer(""), "");
  EXPECT_EQ(answer("head -c 65536 /dev/zero | tr '\\0' x").size(), 65536u);
}

TEST(Hdf5Helper, HasNothingOfOurEnvironment) {
  ::setenv("HDF5_PLUGIN_PATH", "/tmp", 1);
  EXPECT_EQ(answer("printf %s \"$HDF5_PLUGIN_PATH$HOME\""), "");
  ::unsetenv("HDF5_PLUGIN_PATH");
}

TEST(Hdf5Helper, ThatFailsIsAnError) {
  struct Case {
    const char *script, *says;
  };
  constexpr Case kCases[] = {
      {"printf half; exit 3", "exit status 3"},
      {"printf no seccomp; exit 71", "does not allow its sandbox: no"},
      {"kill -SEGV $$", "the HDF5 library crashed (signal 11)"},
      {"kill -SYS $$", "it tried something that is forbidden"},
      {"kill -PROF $$", "more processor time"},
      {"cat /dev/zero", "the answer of mckpt-hdf5 is too long"},
  };
  for (const Case& c : kCases) {
    std::string said = answer(c.script);
    EXPECT_TRUE(said.starts_with("MC1403")) << said;
    EXPECT_NE(said.find(c.says), std::string::npos) << said;
  }
}

TEST(Hdf5Helper, ThatHangsIsEnded) {
  for (const char* script : {"exec sleep 1000", "exec sleep 1000 >&-", "while :; do :; done"})
    EXPECT_NE(answer(script, {1 << 16, 1}).find("did not answer within 1 seconds"), std::string::npos)
        << script;
}

TEST(Hdf5Helper, ThatIsNotThereIsAnError) {
  EXPECT_TRUE(thrown_by([] { helper_output("/no/such/program", {}, 0, {1, 1}); }).starts_with("MC1403"));
}

}  // namespace
}  // namespace mckpt::impl
