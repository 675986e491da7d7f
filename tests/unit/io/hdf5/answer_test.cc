#include "io/hdf5/answer.h"
#include "core/items/shape.h"

#include <gtest/gtest.h>

#include <random>

#include "core/base/error.h"
#include "core/items/dtype.h"
#include "io/file/file.h"
#include "io/hdf5/file.h"
#include "io/store/store.h"
#include "tests/support/hdf5_answer_builder.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace {

using hdf5_wire::Record;

// One record of every kind.
std::vector<u8> every_record() {
  Hdf5AnswerBuilder b;
  b.record(Record::kGroup).text("g").numbers({96});
  b.dataset("g/w", {2, 3}).contiguous(512, 24);
  b.dataset("g/c", {4})
      .byte(2)
      .numbers({2})
      .numbers({1, 1, 6})
      .numbers({2})
      .numbers({0, 600, 8, 0})
      .numbers({1, 608, 8, 0});
  b.dataset("g/i", {1}).byte(1).text("1234");
  b.record(Record::kAttribute)
      .text("")
      .text("step")
      .text("int")
      .text("7")
      .text("int64")
      .text(std::string("\7\0\0\0\0\0\0\0", 8));
  b.record(Record::kOther).text("s").byte(0).text("strings");
  b.record(Record::kSoftLink).text("l").text("/s");
  b.record(Record::kFault).text("x").byte(1).text("a virtual dataset");
  return b.end();
}

std::string failure(const std::vector<u8>& answer) {
  return thrown_by([&] { parse_hdf5_answer(answer); });
}

TEST(Hdf5Answer, IsTakenApart) {
  Hdf5Answer a = parse_hdf5_answer(every_record());
  ASSERT_EQ(a.datasets.size(), 3u);
  EXPECT_EQ(a.datasets[0].name, "g/w");
  EXPECT_EQ(a.datasets[0].dims, (std::vector<i64>{2, 3}));
  EXPECT_EQ(a.datasets[0].offset, 512);
  EXPECT_EQ(a.datasets[1].chunk_dims, (std::vector<i64>{2}));
  EXPECT_EQ(a.datasets[1].filters[0].parameter, 6);
  EXPECT_EQ(a.datasets[1].chunks[1].offset, 608);
  EXPECT_EQ(a.datasets[2].compact.size(), 4u);
  EXPECT_EQ(a.attributes[0].value, "7");
  EXPECT_EQ(a.attributes[0].layout, "int64");
  EXPECT_EQ(a.attributes[0].bytes.size(), 8u);
  EXPECT_EQ(a.others[0].what, "strings");
  EXPECT_EQ(a.links[0].target, "/s");
  EXPECT_EQ(a.faults[0].words, "a virtual dataset");
  EXPECT_EQ(a.groups, (std::vector<std::string>{"g"}));
}

TEST(Hdf5Answer, ThatIsCutAnywhereIsRefused) {
  std::vector<u8> whole = every_record();
  for (std::size_t n = 0; n < whole.size(); n++) {
    std::vector<u8> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
    EXPECT_TRUE(failure(cut).starts_with("MC1403")) << n << ": " << failure(cut);
  }
}

TEST(Hdf5Answer, ThatMakesNoSenseIsRefused) {
  constexpr u64 kHuge = UINT64_MAX / 2;
  std::vector<u8> longer = every_record();
  longer.push_back(0);
  EXPECT_EQ(failure(longer).find("bytes follow the last record") == std::string::npos, false);
  struct Case {
    std::vector<u8> answer;
    const char* says;
  };
  Hdf5AnswerBuilder miscounted;
  miscounted.record(Record::kEnd).numbers({1});
  const Case cases[] = {
      {miscounted.bytes(), "the number of records is wrong"},
      {Hdf5AnswerBuilder().byte('?').end(), "a record is of an unknown kind"},
      {Hdf5AnswerBuilder().record(Record::kGroup).numbers({kHuge}).end(), "a count is larger than possible"},
      {Hdf5AnswerBuilder().dataset("", {}).contiguous(0, 4).end(), "a dataset has no name"},
      {Hdf5AnswerBuilder().dataset("w", {}).byte(4).end(),
       "a field has a value that is not one of its choices"},
      {Hdf5AnswerBuilder().dataset("w", {}).byte(2).end(), "a scalar has chunks"},
      {Hdf5AnswerBuilder().dataset("w", {1}).byte(2).numbers({1, kHuge}).end(),
       "a count is larger than possible"},
      {Hdf5AnswerBuilder().dataset("w", {1}).byte(2).numbers({1, 0, kHuge}).end(),
       "a count is larger than possible"},
      {Hdf5AnswerBuilder().raw("Z").numbers({0}).raw("Z").end(), "bytes follow the last record"},
  };
  for (const Case& c : cases)
    EXPECT_NE(failure(c.answer).find(c.says), std::string::npos) << failure(c.answer);
  std::vector<u8> other = every_record();
  other[11] ^= 1;
  EXPECT_NE(failure(other).find("of another version"), std::string::npos) << failure(other);
}

TEST(Hdf5Answer, OfAnOlderMindIsNeverBelieved) {
  // Random bytes of a right answer changed: an error, or a store that keeps to the file.
  TempFolder folder;
  std::string path = folder.put("x.h5", std::string(1024, 'x'));
  std::mt19937 random(5);
  std::vector<u8> whole = every_record();
  i64 stores = 0, errors = 0;
  for (int round = 0; round < 20000; round++) {
    std::vector<u8> answer = whole;
    for (int n = 1 + static_cast<int>(random() % 4); n > 0; n--)
      answer[random() % answer.size()] =
          random() % 3 ? static_cast<u8>(random()) : (random() % 2 ? u8{0xff} : u8{0});
    try {
      std::unique_ptr<Store> store = hdf5_store(InputFile(path), 0, answer, {});
      stores++;
      for (i64 t = 0; t < store->tensor_count(); t++) {
        ChunkData data = store->resolve(t, 0);
        i64 bytes = dtype_bytes(store->dtype(t), store->shape(t).items());
        if (data.unpacked) {
          EXPECT_EQ(data.unpacked->size(), bytes);
        } else if (bytes > 0) {
          EXPECT_TRUE(data.offset >= 0 && data.offset + bytes <= 1024) << data.offset << " " << bytes;
        }
      }
    } catch (const Error&) {
      errors++;
    }
  }
  EXPECT_GT(stores, 1000);
  EXPECT_GT(errors, 1000);
}

}  // namespace
}  // namespace mckpt::impl
