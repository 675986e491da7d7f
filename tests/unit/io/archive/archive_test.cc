#include "io/archive/archive.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "io/file/crc32.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace mckpt::impl::archive_test {
namespace {

std::span<const u8> bytes_of(std::string_view text) {
  return {reinterpret_cast<const u8*>(text.data()), text.size()};
}

// Two files: "a.txt" is "HELLO" in two pieces, the later one first in the part; "in/b" is "xyz", in another
// part.
struct Made {
  TempFolder folder;
  ArchiveIndex index;

  Made() {
    index.folder = true;
    index.files = {{"a.txt", 5}, {"empty", 0}, {"in/b", 3}};
    index.parts = {{"archive.h5", 0, 0}, {"other.h5", 8, 0}};
    index.rows = {{0, 0, 3, 0, 600, crc32(0, bytes_of("HEL"))},
                  {0, 3, 2, 0, 590, crc32(0, bytes_of("LO"))},
                  {2, 0, 3, 1, 4, crc32(0, bytes_of("xyz"))}};
  }

  std::string path(std::string_view name = "archive.h5") const { return cat(folder.path(), "/", name); }

  // `spoil`: changes the text of the names before it is summed.
  void write(const std::function<void(std::string&)>& spoil = {}) {
    constexpr i64 kNames = 1000;
    std::vector<u8> rows = index.row_bytes();
    index.parts[0].bytes = kNames + std::ssize(index.name_text()) + std::ssize(rows);
    std::string names = index.name_text();
    if (spoil) spoil(names);
    std::string out(kNames, '.');
    IndexPlace place{.rows_offset = kNames + std::ssize(names),
                     .rows_bytes = std::ssize(rows),
                     .names_offset = kNames,
                     .names_bytes = std::ssize(names),
                     .rows_crc32 = crc32(0, rows),
                     .names_crc32 = crc32(0, bytes_of(names))};
    std::vector<u8> block = user_block(place);
    out.replace(0, block.size(), std::string(block.begin(), block.end()));
    out.replace(600, 3, "HEL");
    out.replace(590, 2, "LO");
    out += names + std::string(rows.begin(), rows.end());
    std::ofstream(path(), std::ios::binary) << out;
    std::ofstream(path("other.h5"), std::ios::binary) << "....xyz.";
  }

  std::string read(const std::string& at) const {
    InputFile file(at);
    std::vector<u8> bytes = file.read(0, file.size());
    return {bytes.begin(), bytes.end()};
  }
};

TEST(Archive, HasFilesThatAreReadByTheirPaths) {
  Made made;
  made.write();
  EXPECT_EQ(made.read(made.path("a.txt")), "HELLO");
  EXPECT_EQ(made.read(made.path("in/b")), "xyz");
  EXPECT_EQ(made.read(made.path("archive.h5/in/b")), "xyz");
  EXPECT_EQ(made.read(made.path("empty")), "");
  InputFile file(made.path("a.txt"));
  EXPECT_EQ(file.read(2, 2), std::vector<u8>({'L', 'L'}));
  EXPECT_NE(thrown_by([&] { file.read(2, 4); }), "nothing");

  Folder folder(made.folder.path());
  EXPECT_EQ(folder.file_bytes("a.txt"), 5);
  EXPECT_EQ(folder.file_bytes("archive.h5"), std::nullopt);
  EXPECT_EQ(folder.entries().size(), 3u);
  EXPECT_EQ(folder.entries("in")[0].name, "b");
  EXPECT_EQ(Folder(made.path("in")).file_bytes("b"), 3);
  EXPECT_TRUE(is_folder(made.path("in"), {}));
  EXPECT_TRUE(is_folder(made.path(), {}));
  EXPECT_FALSE(is_folder(made.path("a.txt"), {}));
  EXPECT_TRUE(is_file(made.path("a.txt"), {}));
  EXPECT_NE(thrown_by([&] { folder.open_file("none"); }), "nothing");
  EXPECT_NE(thrown_by([&] { folder.open_file("../x"); }), "nothing");
  EXPECT_NE(thrown_by([&] { InputFile(made.path("none")); }), "nothing");
}

TEST(Archive, IsAFileWhereNobodyAsksForArchives) {
  Made made;
  made.write();
  EXPECT_TRUE(Folder(made.folder.path(), {.containers = nullptr}).has_file("other.h5"));
  made.index.folder = false;  // one file among others
  made.write();
  EXPECT_TRUE(Folder(made.folder.path()).has_file("other.h5"));
  EXPECT_EQ(made.read(made.path("archive.h5/a.txt")), "HELLO");
}

TEST(Archive, WithADamagedIndexIsRefused) {
  using Index = ArchiveIndex;
  const std::pair<const char*, void (*)(Index&)> kCases[] = {
      {"a hole", [](Index& i) { i.rows[1].begin = 4; }},
      {"an overlap", [](Index& i) { i.rows[1].begin = 2; }},
      {"too short", [](Index& i) { i.rows.erase(i.rows.begin() + 1); }},
      {"too long", [](Index& i) { i.rows[1].bytes = 3; }},
      {"of no file", [](Index& i) { i.rows[2].file = 3; }},
      {"of no part", [](Index& i) { i.rows[2].part = 2; }},
      {"beyond a part", [](Index& i) { i.rows[2].offset = 6; }},
      {"a number beyond all", [](Index& i) { i.rows[2].offset = -1; }},
      {"a file twice", [](Index& i) { i.files[2].name = "a.txt"; }},
      {"a file in a file", [](Index& i) { i.files[2].name = "a.txt/b"; }},
      {"a name that leads out", [](Index& i) { i.files[2].name = "../b"; }},
      {"a part elsewhere", [](Index& i) { i.parts[1].name = "in/other.h5"; }},
      {"a part that leads out", [](Index& i) { i.parts[1].name = "/etc/passwd"; }},
  };
  for (const auto& [what, spoil] : kCases) {
    Made made;
    spoil(made.index);
    made.write();
    EXPECT_NE(thrown_by([&] { Folder(made.folder.path()); }), "nothing") << what;
  }
  const char* kTexts[][2] = {
      {"folder", "fooder"}, {"parts 2", "parts 9"}, {"files 3", "files x"}, {"opened", "closed"}};
  for (const auto& text : kTexts) {
    const char *from = text[0], *to = text[1];
    Made made;
    made.write([&](std::string& names) { names.replace(names.find(from), std::string(from).size(), to); });
    EXPECT_NE(thrown_by([&] { Folder(made.folder.path()); }), "nothing") << to;
  }
}

TEST(Archive, FindsEachBitOfItsIndex) {
  Made made;
  made.write();
  std::string whole;
  {
    std::ifstream in(made.path(), std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(in), {});
  }
  for (std::size_t at = 0; at < whole.size(); at++) {
    if ((at >= 512 && at < 1000) || (at >= 60 && at < 512 && at % 7 != 0)) continue;
    std::string other = whole;
    other[at] = static_cast<char>(other[at] ^ 1 << at % 8);
    std::ofstream(made.path(), std::ios::binary) << other;
    if (at < 16)
      EXPECT_EQ(open_archive(made.path(), {}), nullptr) << at;
    else
      EXPECT_TRUE(thrown_by([&] { open_archive(made.path(), {}); }).starts_with("MC1401")) << at;
  }
}

TEST(Archive, WhosePartIsMissingOrOfAnotherSizeSaysSo) {
  Made made;
  made.write();
  std::ofstream(made.path("other.h5"), std::ios::binary) << "....xyz";
  EXPECT_NE(thrown_by([&] { made.read(made.path("in/b")); }).find("size"), std::string::npos);
  std::remove(made.path("other.h5").c_str());
  EXPECT_NE(thrown_by([&] { made.read(made.path("in/b")); }), "nothing");
  EXPECT_EQ(made.read(made.path("a.txt")), "HELLO");
}

}  // namespace
}  // namespace mckpt::impl::archive_test
