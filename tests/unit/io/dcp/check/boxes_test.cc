#include "io/dcp/check/boxes.h"
#include "core/base/error_code.h"
#include "core/base/text.h"
#include "core/items/dtype.h"
#include "io/dcp/metadata/metadata.h"
#include "io/store/finding.h"
#include "io/store/findings.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace mckpt::impl {
namespace {

// One tensor "w" of 8 rows and an object "o", over files of 100 bytes.
class Records : public ::testing::Test {
 protected:
  Records() {
    add_text(m.names, "w");
    m.dims.items.push_back(8);
    m.dims.end_row();
    m.dtypes.push_back(DType::kF32);
    m.files = {"__0_0.distcp", "__1_0.distcp"};
  }
  static void add_text(RaggedRows<char>& rows, std::string_view text) {
    for (char c : text) rows.items.push_back(c);
    rows.end_row();
  }
  void chunk(i64 offset, i64 size, DcpRecord record) {
    m.offsets.items.push_back(offset);
    m.sizes.items.push_back(size);
    m.records.items.push_back(record);
  }
  void object(DcpRecord record) {
    add_text(m.object_names, "o");
    m.object_records.push_back(record);
  }
  static DcpRecord at(i32 file, i64 offset, i64 bytes) {
    return {.file = file, .offset = offset, .bytes = bytes};
  }

  std::string found(std::vector<i64> file_bytes = {100, 100}) {
    m.offsets.end_row();
    m.sizes.end_row();
    m.records.end_row();
    Findings findings;
    check_boxes(m, findings);
    check_records(m, file_bytes, findings);
    std::string out;
    for (const Finding& f : findings.take())
      out += cat(code_name(f.code), " ", f.tensor, " ", f.file, ": ", f.message, "\n");
    return out;
  }

  DcpMetadata m;
};

TEST_F(Records, PassWhenInOrder) {
  chunk(0, 5, at(0, 0, 60));
  chunk(5, 3, at(1, 40, 60));
  object(at(0, 60, 40));
  EXPECT_EQ(found(), "");
}

TEST_F(Records, OfAMissingFileAreToldOnce) {
  chunk(0, 5, at(0, 0, 60));
  chunk(5, 3, at(1, 0, 60));
  EXPECT_EQ(found({100, -1}), "MC1302  __1_0.distcp: .metadata names the file, but it is missing\n");
}

TEST_F(Records, MustLieInsideTheirFile) {
  chunk(0, 5, at(0, 50, 51));
  chunk(5, 3, at(1, 101, 0));
  object(at(1, INT64_MAX, INT64_MAX));
  EXPECT_EQ(found(),
            "MC1308 w __0_0.distcp: the record at offset 50, length 51, reaches beyond the end of the file, "
            "which has 100 bytes\n"
            "MC1308 w __1_0.distcp: the record at offset 101, length 0, reaches beyond the end of the file, "
            "which has 100 bytes\n"
            "MC1308 o __1_0.distcp: the record at offset 9223372036854775807, length 9223372036854775807, "
            "reaches beyond the end "
            "of the file, which has 100 bytes\n");
}

TEST_F(Records, MustNotHaveNegativeNumbers) {
  chunk(0, 8, at(0, -1, 10));
  EXPECT_EQ(
      found(),
      "MC1308 w __0_0.distcp: the record at offset -1, length 10, is out of range: a number is negative\n");
}

TEST_F(Records, MustBeLargeEnoughForTheirChunks) {
  m.dims.items[0] = i64{1} << 60;
  chunk(0, i64{1} << 60, at(0, 0, 60));
  EXPECT_EQ(
      found(),
      "MC1310 w __0_0.distcp: the record of 60 bytes is too small for a chunk of [1152921504606846976] of "
      "float32\n");
}

TEST_F(Records, MayBeDeflated) {
  m.dims.items[0] = 60 * 1032 / 4;
  chunk(0, 60 * 1032 / 4, at(0, 0, 60));
  EXPECT_EQ(found(), "");
}

TEST_F(Records, MustNotShareBytes) {
  chunk(0, 5, at(0, 0, 60));
  chunk(5, 3, at(0, 50, 10));
  object(at(0, 55, 45));
  EXPECT_EQ(found(),
            "MC1309 w __0_0.distcp: the record overlaps that of 'w' at offset 0\n"
            "MC1309 o __0_0.distcp: the record overlaps that of 'w' at offset 0\n");
}

TEST_F(Records, OfEmptyChunksAtOneOffsetAreOne) {
  chunk(0, 8, at(0, 0, 60));
  chunk(8, 0, at(1, 0, 30));
  chunk(8, 0, at(1, 0, 30));
  EXPECT_EQ(found(), "");
}

TEST_F(Records, LeaveHolesAndOverlapsOfTheTensorToldByBox) {
  chunk(0, 3, at(0, 0, 60));
  chunk(2, 3, at(0, 60, 20));
  EXPECT_EQ(found(),
            "MC1305 w __0_0.distcp: chunks 0 and 1 overlap: offsets [2], sizes [1]\n"
            "MC1304 w : a hole: no chunk covers offsets [5], sizes [3]\n");
}

TEST(Findings, AreCountedBeyondTheFirstOfAKind) {
  Findings findings;
  for (int i = 0; i < 60; i++) findings.add({.code = Code::kChunkHole, .message = "x"});
  findings.add({.code = Code::kRecordUnused, .message = "y", .warning = true});
  std::vector<Finding> list = findings.take();
  ASSERT_EQ(list.size(), 52u);
  EXPECT_EQ(list.back().message, "and 10 more of this kind");
  EXPECT_EQ(list.back().code, Code::kChunkHole);
}

}  // namespace
}  // namespace mckpt::impl
