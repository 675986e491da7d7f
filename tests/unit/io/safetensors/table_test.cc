#include "io/safetensors/table.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "io/file/file.h"
#include "tests/support/safetensors_text.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace {

SafetensorsTable table_of(const std::string& file) {
  return SafetensorsTable(MemorySource({reinterpret_cast<const u8*>(file.data()), file.size()}));
}

std::string fault(const std::string& file) {
  return thrown_by([&] { table_of(file); });
}

std::string fault(std::string_view header, std::size_t data_bytes) {
  return fault(safetensors_file(header, std::string(data_bytes, 'd')));
}

TEST(SafetensorsTable, ListsTensorsInTheOrderOfTheirBytes) {
  std::string header = cat(
      "{", safetensors_entry("late", "F32", "2,1", 6, 14), ",", safetensors_entry("early", "BF16", "3", 0, 6),
      ",\"__metadata__\":{\"format\":\"pt\"},", safetensors_entry("none", "I64", "0,7", 6, 6), ",",
      safetensors_entry("scalar", "U8", "", 14, 15), "}  ");
  SafetensorsTable t = table_of(safetensors_file(header, std::string(15, 'd')));
  ASSERT_EQ(t.size(), 4);
  EXPECT_EQ(t.name(0), "early");
  EXPECT_EQ(t.name(1), "none");
  EXPECT_EQ(t.name(2), "late");
  EXPECT_EQ(dims_to_string(t.dims(2)), "[2, 1]");
  EXPECT_EQ(t.offset(2), static_cast<i64>(8 + header.size() + 6));
  EXPECT_EQ(t.bytes(2), 8);
  EXPECT_EQ(t.dims(3).size(), 0u);
  EXPECT_EQ(t.dtype(3), DType::kU8);
  ASSERT_EQ(t.metadata().size(), 1u);
  EXPECT_EQ(t.metadata()[0].second, "pt");
  EXPECT_TRUE(t.findings().empty());
}

TEST(SafetensorsTable, GivesPairsOfFourBitFloatsAsTorchCountsThem) {
  std::string header = cat("{", safetensors_entry("even", "F4", "3,8", 0, 12), ",",
                           safetensors_entry("odd", "F4", "2,3", 12, 15), "}");
  SafetensorsTable t = table_of(safetensors_file(header, std::string(15, 'd')));
  EXPECT_EQ(t.dtype(0), DType::kF4x2);
  EXPECT_EQ(dims_to_string(t.dims(0)), "[3, 4]");
  EXPECT_EQ(t.dtype(1), DType::kF4);
  EXPECT_EQ(dims_to_string(t.dims(1)), "[2, 3]");
}

TEST(SafetensorsTable, TakesNullForNoMetadata) {
  SafetensorsTable t = table_of(
      safetensors_file(cat("{\"__metadata__\":null,", safetensors_entry("w", "U8", "1", 0, 1), "}"), "d"));
  EXPECT_EQ(t.size(), 1);
  EXPECT_TRUE(t.metadata().empty());
  EXPECT_TRUE(t.findings().empty());
}

TEST(SafetensorsTable, ReadsEscapedNames) {
  SafetensorsTable t = table_of(
      safetensors_file(cat("{", safetensors_entry("a\\u0000\\n\\u00e9", "U8", "1", 0, 1), "}"), "d"));
  EXPECT_EQ(t.name(0), std::string_view("a\0\n\xc3\xa9", 5));
  ASSERT_EQ(t.findings().size(), 1u);
  EXPECT_EQ(t.findings()[0].code, Code::kOddName);
}

TEST(SafetensorsTable, RefusesEachBreachOfTheFormat) {
  auto entry = [](std::string_view fields) { return cat("{\"w\":{", fields, "}}"); };
  const std::string w = safetensors_entry("w", "F32", "2", 0, 8);
  struct Case {
    std::string header;
    std::size_t data_bytes;
    std::string_view expected;
  };
  const Case cases[] = {
      {"[]", 0, "MC1003 JSON of the safetensors header: an object is expected in the JSON, not an array"},
      {"", 0, "MC1102 the header length is 0: there is no JSON header"},
      {cat("{", w, ",", w, "}"), 8,
       "MC1003 JSON of the safetensors header: the key 'w' is there twice (duplicate)"},
      {cat("{", w, "}{}"), 8,
       "MC1003 JSON of the safetensors header: text follows the end of the JSON (trailing)"},
      {"{\"__metadata__\":{\"a\":1}}", 0,
       "MC1003 JSON of the safetensors header: __metadata__: the value of 'a' is not a string"},
      {"{\"__metadata__\":[]}", 0,
       "MC1003 JSON of the safetensors header: __metadata__ is not an object of strings"},
      {entry("\"shape\":[2],\"data_offsets\":[0,8]"), 8,
       "MC1102 tensor 'w': the header entry has no 'dtype' (missing)"},
      {entry("\"dtype\":\"F32\",\"data_offsets\":[0,8]"), 8,
       "MC1102 tensor 'w': the header entry has no 'shape' (missing)"},
      {entry("\"dtype\":\"F32\",\"shape\":[2]"), 8,
       "MC1102 tensor 'w': the header entry has no 'data_offsets' (missing)"},
      {safetensors_entry("w", "F33", "2", 0, 8), 8, "MC1003"},
      {cat("{", safetensors_entry("w", "F33", "2", 0, 8), "}"), 8,
       "MC0103 tensor 'w': dtype: unknown data type 'F33'"},
      {cat("{", safetensors_entry("w", "F32", "-2", 0, 8), "}"), 8,
       "MC0102 tensor 'w': shape: a dimension of [-2] is negative"},
      {cat("{", safetensors_entry("w", "F32", "2.0", 0, 8), "}"), 8,
       "MC1003 tensor 'w': JSON of the safetensors header, shape: an integer is expected, not 2.0"},
      {cat("{", safetensors_entry("w", "F32", "-0", 0, 0), "}"), 0,
       "MC1003 tensor 'w': JSON of the safetensors header, shape: an integer is expected, not -0"},
      {entry("\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[-0,8]"), 8,
       "MC1003 tensor 'w': JSON of the safetensors header, data_offsets: an integer is expected, not -0"},
      {cat("{", safetensors_entry("w", "F32", "4611686018427387910", 0, 24), "}"), 24,
       "MC0101 tensor 'w': shape: the size of a tensor in bytes does not fit 63 bits"},
      {cat("{", safetensors_entry("w", "F32", "4294967296,4294967296", 0, 0), "}"), 0,
       "MC0101 tensor 'w': shape: "},
      {cat("{", safetensors_entry("w", "F32", "3", 0, 8), "}"), 8,
       "MC1103 tensor 'w': the size of data_offsets does not match shape and dtype: expected 12 bytes for "
       "[3] of float32"},
      {cat("{", safetensors_entry("w", "F6_E2M3", "3", 0, 2), "}"), 2, "MC0102 tensor 'w': shape: "},
      {cat("{", safetensors_entry("w", "F32", "2", 8, 0), "}"), 8,
       "MC1103 tensor 'w': data_offsets are not a range"},
      {cat("{", safetensors_entry("w", "F32", "2", -8, 0), "}"), 8,
       "MC1103 tensor 'w': data_offsets are not a range"},
      {cat("{", safetensors_entry("w", "F32", "2", 4, 12), "}"), 12,
       "MC1104 tensor 'w': there is a gap before the tensor's bytes"},
      {cat("{", w, ",", safetensors_entry("v", "F32", "2", 4, 12), "}"), 12,
       "MC1104 tensor 'v': the tensor's offsets overlap"},
      {cat("{", w, ",", safetensors_entry("z", "F32", "0", 4, 4), "}"), 8,
       "MC1104 tensor 'z': the tensor's offsets overlap"},
      {cat("{", w, "}"), 9, "MC1104 trailing bytes after the last tensor"},
      {cat("{", w, "}"), 7, "MC1101 the file is cut short (truncated)"},
      {"{}", 1, "MC1104 trailing bytes"},
  };
  for (const Case& c : cases)
    EXPECT_EQ(fault(c.header, c.data_bytes).substr(0, c.expected.size()), c.expected) << c.header;
}

TEST(SafetensorsTable, OffsetsMayBeAsLargeAsNumbersCanBe) {
  const std::string most = "9223372036854775807";
  EXPECT_EQ(
      fault(cat("{\"a\":{\"dtype\":\"I64\",\"shape\":[0],\"data_offsets\":[", most, ",", most, "]}}"), 0)
          .substr(0, 6),
      "MC1104");
  EXPECT_EQ(fault(cat("{\"a\":{\"dtype\":\"U8\",\"shape\":[", most, "],\"data_offsets\":[0,", most,
                      "]},\"b\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[", most, ",", most, "]}}"),
                  0)
                .substr(0, 6),
            "MC1101");
}

TEST(SafetensorsTable, ChecksTheLengthBeforeItAllocates) {
  auto length = [](u64 n) {
    std::string out;
    for (int i = 0; i < 8; i++) out += static_cast<char>(n >> (8 * i));
    return out + "{}";
  };
  EXPECT_EQ(fault("").substr(0, 6), "MC1102");
  EXPECT_EQ(fault("1234567").substr(0, 6), "MC1102");
  EXPECT_EQ(fault(length(3)).substr(0, 6), "MC1101");
  EXPECT_EQ(fault(length(2)), "nothing");
  for (u64 n : {u64{100'000'001}, u64{1} << 40, u64{1} << 63, ~u64{0} - 7, ~u64{0}})
    EXPECT_EQ(fault(length(n)).substr(0, 6), "MC1102") << n;
}

TEST(SafetensorsTable, SaysWhatACutFileStillHolds) {
  std::string header = "{";
  for (int i = 0; i < 19; i++) {
    std::string name =
        i < 10 ? std::string{'w', static_cast<char>('0' + i)} : std::string(static_cast<std::size_t>(i), 'x');
    header += cat(i ? "," : "", safetensors_entry(name, "U8", "10", 10 * i, 10 * i + 10));
  }
  header += "}";
  std::string file = safetensors_file(header, std::string(75, 'd'));
  try {
    table_of(file);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kCutShort);
    EXPECT_EQ(e.expected(), cat(8 + static_cast<i64>(header.size()) + 190, " bytes, as the header promises"));
    ASSERT_EQ(e.notes().size(), 2u);
    EXPECT_EQ(e.notes()[0], "the first tensor that is cut: w7, data bytes 70..80 of 75 present");
    EXPECT_EQ(e.notes()[1], "7 of 19 tensors are whole; 12 are not");
  }
}

// Every prefix of a good file is bad, and none does harm.
TEST(SafetensorsTable, RefusesEveryPrefix) {
  std::string file = safetensors_file(cat("{", safetensors_entry("w", "F32", "2", 0, 8), "}"), "12345678");
  EXPECT_EQ(fault(file), "nothing");
  for (std::size_t n = 0; n < file.size(); n++) EXPECT_NE(fault(file.substr(0, n)), "nothing") << n;
}

}  // namespace
}  // namespace mckpt::impl
