#include "io/zip/zip.h"

#include <gtest/gtest.h>

#include "io/file/file.h"
#include "tests/support/throws.h"
#include "tests/support/zip_builder.h"

namespace mckpt::impl {
namespace {

std::string opened(const std::vector<u8>& bytes, i64 trailing = 0) {
  MemorySource source(bytes);
  return thrown_by([&] { ZipArchive zip(source, trailing); });
}

ZipBuilder two_records() {
  ZipBuilder b;
  b.add("archive/data.pkl", "pickle").add("archive/data/0", "12345678");
  return b;
}

std::vector<u8> with_change(const ZipBuilder::Change& change) {
  ZipBuilder b;
  return b.add("archive/data.pkl", "pickle", change).add("archive/data/0", "12345678").finish();
}

TEST(Zip, FindsRecordsAndTheirData) {
  std::vector<u8> bytes = two_records().finish();
  MemorySource source(bytes);
  ZipArchive zip(source);
  ASSERT_EQ(zip.entries().size(), 2u);
  const ZipEntry* e = zip.find("archive/data/0");
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(e->bytes, 8);
  EXPECT_EQ(std::string(bytes.begin() + e->data_offset, bytes.begin() + e->data_offset + 8), "12345678");
  EXPECT_EQ(zip.find("archive/data/1"), nullptr);
  EXPECT_EQ(zip.find("ARCHIVE/data/0"), nullptr);
  EXPECT_EQ(zip.read(*e, 8).size(), 8u);
  EXPECT_EQ(thrown_by([&] { zip.read(*e, 7); }),
            "MC1202 the record 'archive/data/0' is larger than the limit: expected at most 7 bytes, found 8");
}

TEST(Zip, ReadsAnArchiveInsideAFile) {
  std::vector<u8> zip = two_records().finish(), bytes(11 + zip.size() + 5, 'x');
  std::copy(zip.begin(), zip.end(), bytes.begin() + 11);
  MemorySource source(bytes);
  RangeSource item(source, 11, static_cast<i64>(zip.size()));
  ZipArchive archive(item);
  EXPECT_EQ(archive.find("archive/data.pkl")->data_offset, 30 + 16);
}

TEST(Zip, TakesZip64EndRecordsOfSmallArchives) {
  EXPECT_EQ(opened(two_records().finish([](auto& e) { e.zip64 = true; })), "nothing");
}

TEST(Zip, TakesTrailingBytesOnlyWhereAllowed) {
  std::vector<u8> bytes = two_records().finish();
  bytes.insert(bytes.end(), 4, 0);
  EXPECT_EQ(opened(bytes, 4), "nothing");
  EXPECT_EQ(opened(bytes),
            "MC1201 the zip archive is damaged: 4 trailing bytes follow the end of the zip archive");
}

TEST(Zip, TakesSizesThatFollowTheData) {
  auto described = [](ZipHeader& local, ZipHeader&) {
    local.flags = 0x808;
    local.crc = 0, local.stored = 0, local.bytes = 0;
  };
  EXPECT_EQ(opened(with_change(described)), "nothing");
}

TEST(Zip, TakesFoldersAndAComment) {
  ZipBuilder b;
  b.add("archive/", "").add("archive/data.pkl", "x");
  EXPECT_EQ(opened(b.finish([](auto& e) { e.comment = "made by hand"; })), "nothing");
}

TEST(Zip, RefusesTruncation) {
  std::vector<u8> whole = two_records().finish();
  for (std::size_t n = 0; n < whole.size(); n++)
    EXPECT_NE(opened({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n)}), "nothing") << n;
}

struct Falsified {
  const char* name;
  ZipBuilder::Change change;
  const char* message;
};

TEST(Zip, RefusesHeadersThatDisagree) {
  const Falsified kCases[] = {
      {"local name", [](auto& l, auto&) { l.name = "archive/data.pkm"; },
       "differs from the central directory: the name"},
      {"local size", [](auto& l, auto&) { l.bytes = 5; }, "differs from the central directory: the size"},
      {"local crc", [](auto& l, auto&) { l.crc ^= 1; }, "differs from the central directory: the checksum"},
      {"local method", [](auto& l, auto&) { l.method = 8; },
       "differs from the central directory: the method"},
      {"method", [](auto& l, auto& c) { l.method = c.method = 99; }, "unsupported compression method (99)"},
      {"encrypted", [](auto&, auto& c) { c.flags = 1; }, "is encrypted"},
      {"symlink", [](auto&, auto& c) { c.attributes = 0120777u << 16; }, "attribute of a symlink"},
      {"two sizes", [](auto&, auto& c) { c.bytes = 5; }, "has two sizes, 5 and 6"},
      {"inflated from nothing", [](auto& l, auto& c) { l.method = c.method = 8, l.stored = c.stored = 0; },
       "the compressed record 'archive/data.pkl' of 6 bytes has no bytes"},
      {"too large", [](auto& l, auto& c) { l.bytes = l.stored = c.bytes = c.stored = 1000; },
       "overlaps what follows it"},
      {"into data", [](auto&, auto& c) { c.offset = 3; }, "a prefix was put in front of it"},
      {"beyond", [](auto&, auto& c) { c.offset = 1u << 30; }, "does not begin with a record"},
      {"no zip64", [](auto&, auto& c) { c.bytes = 0xffffffff; }, "0xffffffff has no zip64 extra field"},
      {"traversal", [](auto& l, auto& c) { l.name = c.name = "archive/../../x"; },
       "leads outside of its folder"},
      {"absolute", [](auto& l, auto& c) { l.name = c.name = "/etc/passwd"; }, "is an absolute path"},
      {"nul", [](auto& l, auto& c) { l.name = c.name = std::string("a\0b", 3); }, "holds a NUL byte"},
      {"same name", [](auto& l, auto& c) { l.name = c.name = "archive/data/0"; }, "is a duplicate"},
      {"same but case", [](auto& l, auto& c) { l.name = c.name = "Archive/DATA/0"; }, "is a duplicate"},
  };
  for (const Falsified& c : kCases) {
    std::string found = opened(with_change(c.change));
    EXPECT_NE(found.find(c.message), std::string::npos) << c.name << ": " << found;
  }
}

TEST(Zip, RefusesTwoEntriesForOneRecord) {
  ZipBuilder b = two_records();
  b.add("archive/data/1", "", [](auto&, auto& c) { c.offset = 0; });
  EXPECT_NE(opened(b.finish()).find("overlaps what follows it"), std::string::npos);
}

struct FalsifiedEnd {
  const char* name;
  std::function<void(ZipBuilder::End&)> change;
  const char* message;
};

TEST(Zip, RefusesEndRecordsThatDoNotFit) {
  constexpr u64 kMax = UINT64_MAX;
  const FalsifiedEnd kCases[] = {
      {"fewer entries", [](auto& e) { e.entries = 1; }, "holds more than the 1 entries"},
      {"more entries", [](auto& e) { e.entries = 3; }, "counts 3 entries"},
      {"huge count", [](auto& e) { e.zip64 = true, e.entries = u64{1} << 40; },
       "counts 1099511627776 entries"},
      {"wrapping offset", [](auto& e) { e.zip64 = true, e.directory_offset = kMax - 10; }, "overflows"},
      {"offset", [](auto& e) { e.directory_offset += 1; }, "is beyond its place"},
      {"size", [](auto& e) { e.directory_bytes -= 1; }, "the central directory ends at"},
  };
  for (const FalsifiedEnd& c : kCases) {
    std::string found = opened(two_records().finish(c.change));
    EXPECT_NE(found.find(c.message), std::string::npos) << c.name << ": " << found;
  }
}

// Where the last record of that mark begins.
std::size_t place_of(const std::vector<u8>& bytes, std::string_view mark) {
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()).rfind(mark);
}

constexpr std::string_view kDirectory = "PK\x01\x02", kEnd64 = "PK\x06\x06", kLocator = "PK\x06\x07",
                           kEnd = "PK\x05\x06";

// Archives that torch's reader takes and that it refuses, field by field.
TEST(Zip, IsOneFileAsTorchSeesIt) {
  struct Fields {
    const char* name;
    bool zip64;
    std::vector<std::tuple<std::string_view, std::size_t, u8>> changes;  // record, byte in it, value
    const char* expected;
  };
  const char* const kParts = "MC1202 the zip archive is one of several parts";
  const char* const kElsewhere =
      "MC1202 the record 'archive/data/0' is said to be in another part of the archive";
  const Fields kCases[] = {
      {"disk", false, {{kEnd, 4, 2}}, kParts},
      {"disk of the directory", false, {{kEnd, 6, 1}}, kParts},
      {"disk, upper byte", false, {{kEnd, 5, 1}, {kEnd, 7, 1}}, kParts},
      {"counted from 1 in part",
       false,
       {{kEnd, 4, 1}, {kEnd, 6, 1}, {kDirectory, 34, 1}},
       "MC1202 the record 'archive/data.pkl' is said to be in another part of the archive"},
      {"entries here", false, {{kEnd, 8, 1}}, kParts},
      {"entry", false, {{kDirectory, 34, 1}}, "nothing"},
      {"entry elsewhere", false, {{kDirectory, 34, 2}}, kElsewhere},
      {"entry elsewhere, upper byte", false, {{kDirectory, 35, 1}}, kElsewhere},
      {"entry, number in zip64", true, {{kDirectory, 34, 0xff}, {kDirectory, 35, 0xff}}, kElsewhere},
      {"zip64 counts", true, {{kEnd, 4, 2}, {kEnd, 6, 3}, {kEnd, 8, 7}}, "nothing"},
      {"zip64 disk", true, {{kEnd64, 16, 2}}, kParts},
      {"zip64 disk of the directory", true, {{kEnd64, 23, 1}}, kParts},
      {"zip64 entries here", true, {{kEnd64, 24, 1}}, kParts},
      {"zip64 disks", true, {{kLocator, 16, 2}}, kParts},
      {"zip64 no disks", true, {{kLocator, 16, 0}}, kParts},
      {"zip64 larger record", true, {{kEnd64, 4, 60}}, "nothing"},
      {"zip64 smaller record",
       true,
       {{kEnd64, 4, 43}},
       "MC1201 the zip archive is damaged: the size of the zip64"},
      {"patch",
       false,
       {{kDirectory, 8, 0x20}},
       "MC1202 the record 'archive/data/0' is a patch of another record"},
      {"folder",
       false,
       {{kDirectory, 38, 0x10}},
       "MC1202 the record 'archive/data/0' has the attribute of a folder"},
      {"other attributes", false, {{kDirectory, 38, 0x2f}}, "nothing"},
  };
  for (const Fields& c : kCases) {
    std::vector<u8> bytes = two_records().finish([&](auto& e) { e.zip64 = c.zip64; });
    for (auto [record, at, value] : c.changes) bytes[place_of(bytes, record) + at] = value;
    EXPECT_EQ(opened(bytes).substr(0, std::string_view(c.expected).size()), c.expected) << c.name;
  }
  ZipBuilder one;
  std::vector<u8> counted_from_1 = one.add("archive/data.pkl", "pickle").finish();
  for (auto [record, at] : {std::pair{kEnd, 4}, {kEnd, 6}, {kDirectory, 34}})
    counted_from_1[place_of(counted_from_1, record) + static_cast<std::size_t>(at)] = 1;
  EXPECT_EQ(opened(counted_from_1), "nothing");
}

TEST(Zip, RefusesAPrefix) {
  std::vector<u8> zip = two_records().finish(), bytes(100 + zip.size(), 'x');
  std::copy(zip.begin(), zip.end(), bytes.begin() + 100);
  EXPECT_NE(opened(bytes).find("(a prefix)"), std::string::npos);
}

TEST(Zip, FindsAFlippedBit) {
  std::vector<u8> bytes = two_records().finish();
  bytes[30 + 16] ^= 1;
  MemorySource source(bytes);
  ZipArchive zip(source);
  EXPECT_NE(thrown_by([&] { zip.read(zip.entries()[0], 100); }).find("MC1203"), std::string::npos);
}

// "hello" deflated by zlib.
constexpr std::string_view kHelloDeflated("\xcb\x48\xcd\xc9\xc9\x07\x00", 7);

std::string inflated_as(u64 bytes, std::string_view stream = kHelloDeflated) {
  ZipBuilder b;
  b.add("archive/data.pkl", stream, [&](ZipHeader& l, ZipHeader& c) {
    l.method = c.method = 8;
    l.bytes = c.bytes = bytes;
    l.crc = c.crc = crc32(0, as_bytes("hello"));
  });
  std::vector<u8> file = b.finish();
  MemorySource source(file);
  ZipArchive zip(source);
  std::string text;
  std::string error = thrown_by([&] {
    std::vector<u8> data = zip.read(zip.entries()[0], 1 << 20);
    text.assign(data.begin(), data.end());
  });
  return error == "nothing" ? text : error;
}

TEST(Zip, InflatesExactlyWhatIsDeclared) {
  EXPECT_EQ(inflated_as(5), "hello");
  EXPECT_NE(inflated_as(4).find("does not inflate to its declared size of 4 bytes"), std::string::npos);
  EXPECT_NE(inflated_as(6).find("does not inflate"), std::string::npos);
  EXPECT_NE(inflated_as(5, kHelloDeflated.substr(0, 6)).find("does not inflate"), std::string::npos);
}

TEST(Crc32, JoinsPieces) {
  u32 a = crc32(0, as_bytes("123")), b = crc32(0, as_bytes("456789"));
  EXPECT_EQ(crc32(0, as_bytes("123456789")), 0xcbf43926u);
  EXPECT_EQ(crc32_join(a, b, 6), 0xcbf43926u);
}

}  // namespace
}  // namespace mckpt::impl
