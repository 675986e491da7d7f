#include "io/file/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "io/file/folder.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace {

namespace fs = std::filesystem;

// A scratch folder of its own for each test.
class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "mckpt_file_XXXXXX").string();
    root = ::mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(root); }
  void put(const std::string& name, std::string_view text) {
    fs::create_directories(fs::path(root + "/" + name).parent_path());
    std::ofstream(root + "/" + name, std::ios::binary) << text;
  }
  void link(const std::string& name, const std::string& target) {
    fs::create_directories(fs::path(root + "/" + name).parent_path());
    fs::create_symlink(target, root + "/" + name);
  }
  std::string text_of(const InputFile& file) {
    std::vector<u8> bytes = file.read(0, file.size());
    return {bytes.begin(), bytes.end()};
  }

  std::string root;
};

TEST_F(Files, ReadAtAnyOffset) {
  put("f", "0123456789");
  InputFile file(root + "/f");
  std::vector<u8> bytes = file.read(3, 4);
  EXPECT_EQ(std::string(bytes.begin(), bytes.end()), "3456");
  EXPECT_EQ(file.read(10, 0).size(), 0u);
  EXPECT_NE(thrown_by([&] { file.read(8, 3); }).find("MC1002 a read would pass the end of the file"),
            std::string::npos);
  EXPECT_NE(thrown_by([&] { file.read(-1, 1); }).find("MC1002"), std::string::npos);
  EXPECT_NE(thrown_by([&] { file.read(1, INT64_MAX); }).find("MC1002"), std::string::npos);
}

TEST_F(Files, BlocksAreReadFromTheCacheAndFromTheDisk) {
  constexpr i64 kBytes = (1 << 20) + 123;
  std::string text;
  for (i64 i = 0; i < kBytes; i++) text += static_cast<char>(i * 31 >> 3);
  put("f", text);
  InputFile file(root + "/f");
  auto* buffer = static_cast<u8*>(std::aligned_alloc(ByteSource::kPage, 2 << 20));
  for (bool cold : {false, true, true})
    for (i64 offset : {i64{0}, i64{4096}, i64{256 << 10}, i64{1} << 20})
      for (i64 bytes : {i64{1}, i64{4096}, i64{100'000}, kBytes - offset}) {
        if (offset + bytes > kBytes) continue;
        if (cold) {
          ASSERT_EQ(::fsync(file.fd()), 0);
          ASSERT_EQ(::posix_fadvise(file.fd(), 8192, 0, POSIX_FADV_DONTNEED), 0);  // the first pages stay
        }
        std::fill_n(buffer, 2 << 20, u8{0xEE});
        file.read_block(offset, {buffer, static_cast<std::size_t>(bytes)});
        EXPECT_EQ(text.compare(static_cast<std::size_t>(offset), static_cast<std::size_t>(bytes),
                               reinterpret_cast<char*>(buffer), static_cast<std::size_t>(bytes)),
                  0)
            << offset << " + " << bytes;
        EXPECT_EQ(buffer[ceil_div(bytes, ByteSource::kPage) * ByteSource::kPage], 0xEE);
      }
  EXPECT_NE(thrown_by([&] { file.read_block(0, {buffer, kBytes + 1}); }).find("MC1002"), std::string::npos);
  ASSERT_EQ(::truncate((root + "/f").c_str(), 500'000), 0);
  EXPECT_NE(thrown_by([&] {
              file.read_block(0, {buffer, kBytes});
            }).find("became shorter"),
            std::string::npos);
  std::free(buffer);
}

TEST_F(Files, ThatShrinkGiveAnErrorWithTheOffset) {
  put("f", std::string(10000, 'x'));
  InputFile file(root + "/f");
  ASSERT_EQ(::truncate((root + "/f").c_str(), 6000), 0);
  try {
    file.read(5000, 5000);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.offset(), 6000);
    EXPECT_NE(std::string(e.what()).find("became shorter"), std::string::npos);
  }
}

TEST_F(Files, OfOtherKindsAreRefusedWithoutBlocking) {
  ASSERT_EQ(::mkfifo((root + "/pipe").c_str(), 0600), 0);
  EXPECT_NE(thrown_by([&] { InputFile f(root + "/pipe"); }).find("MC1005"), std::string::npos);
  EXPECT_NE(thrown_by([&] { InputFile f(root); }).find("MC1005"), std::string::npos);
  EXPECT_NE(thrown_by([&] { InputFile f(root + "/nothing"); }).find("MC1001"), std::string::npos);
  Folder folder(root);
  EXPECT_NE(thrown_by([&] { folder.open_file("pipe"); }).find("MC1005"), std::string::npos);
}

TEST_F(Files, AreListedInNaturalOrder) {
  put("f10", ""), put("f2", ""), put("d/x", ""), put(".hidden", "");
  std::string names;
  for (const FolderEntry& e : Folder(root).entries()) names += e.name + (e.folder ? "/ " : " ");
  EXPECT_EQ(names, ".hidden d/ f2 f10 ");
  EXPECT_EQ(Folder(root).entries("d").size(), 1u);
}

TEST_F(Files, AreFoundInsideTheFolder) {
  put("a/b/c", "abc");
  Folder folder(root);
  EXPECT_EQ(text_of(folder.open_file("a/b/c")), "abc");
  EXPECT_EQ(folder.file_bytes("a/b/c"), 3);
  EXPECT_EQ(folder.file_bytes("a/x"), std::nullopt);
  EXPECT_EQ(folder.file_bytes("a/b/c/d"), std::nullopt);
  EXPECT_NE(thrown_by([&] { folder.open_file("a/x"); }).find("MC1001"), std::string::npos);
}

TEST_F(Files, OfBadNamesAreRefused) {
  Folder folder(root);
  for (std::string_view name :
       {"", "..", "../x", "a/../../x", "a/..", "/etc/passwd", ".", "./x", "a//b", "a/", "a\\b"})
    EXPECT_NE(thrown_by([&] { folder.open_file(name); }).find("MC1004"), std::string::npos) << name;
  EXPECT_NE(thrown_by([&] { folder.open_file(std::string_view("a\0b", 3)); }).find("MC1004"),
            std::string::npos);
  EXPECT_NE(thrown_by([&] { folder.open_file(std::string(5000, 'a')); }).find("MC1004"), std::string::npos);
}

TEST_F(Files, BehindLinksAreReadOnlyInside) {
  put("in/data", "data"), put("out", "secret");
  link("in/good", "data"), link("in/sub/up", "../data");
  link("in/absolute", root + "/in/data"), link("in/leaves", "../out"), link("in/loop", "loop");
  Folder folder(root + "/in");
  EXPECT_EQ(text_of(folder.open_file("good")), "data");
  EXPECT_EQ(text_of(folder.open_file("sub/up")), "data");
  for (std::string_view name : {"absolute", "leaves", "loop"})
    EXPECT_NE(thrown_by([&] { folder.open_file(name); }).find("MC1004"), std::string::npos) << name;
}

TEST_F(Files, OfAHubCacheMayLinkToItsBlobs) {
  put("models--o--n/blobs/0123", "weights"), put("secret", "secret");
  link("models--o--n/snapshots/abc/model.bin", "../../blobs/0123");
  link("models--o--n/snapshots/abc/sub/model.bin", "../../../blobs/0123");
  link("models--o--n/snapshots/abc/evil", "../../../secret");
  Folder folder(root + "/models--o--n/snapshots/abc/");
  EXPECT_EQ(text_of(folder.open_file("model.bin")), "weights");
  EXPECT_EQ(text_of(folder.open_file("sub/model.bin")), "weights");
  EXPECT_EQ(folder.entries().size(), 3u);
  EXPECT_NE(thrown_by([&] { folder.open_file("evil"); }).find("MC1004"), std::string::npos);
}

// The walk for old kernels opens and refuses what the kernel's own does.
TEST_F(Files, AreOpenedByStepsAsTheKernelDoes) {
  put("in/a/f", "f"), put("out", "secret");
  link("in/l", "a/f"), link("in/dir", "a"), link("in/abs", root + "/in/a/f"), link("in/up", "../out");
  link("in/a/back", "../a/f"), link("in/loop", "loop"), link("in/a/far", "../../in/a/f");
  int fd = ::open((root + "/in").c_str(), O_RDONLY | O_DIRECTORY);
  struct {
    const char* name;
    int error;
  } cases[] = {{"a/f", 0},      {"l", 0},           {"dir/f", 0},      {"a/back", 0},    {"abs", EXDEV},
               {"up", EXDEV},   {"loop", ELOOP},    {"a/far", EXDEV},  {"none", ENOENT}, {"../out", EXDEV},
               {"a/../a/f", 0}, {"a/none", ENOENT}, {"a/f/x", ENOTDIR}};
  for (const auto& c : cases) {
    int got = open_beneath_by_steps(fd, c.name, O_RDONLY | O_CLOEXEC);
    EXPECT_EQ(got < 0 ? errno : 0, c.error) << c.name;
    if (got >= 0) ::close(got);
  }
  ::close(fd);
}

}  // namespace
}  // namespace mckpt::impl
