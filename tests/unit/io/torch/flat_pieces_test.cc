// Flat pieces of FSDP1's LOCAL_STATE_DICT, as torch wrote them (test_data/rank_files/make.py): their places,
// and what is wrong with files that are changed.
#include "io/torch/flat_pieces.h"
#include "io/store/open/format_ids.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "core/base/text.h"
#include "core/items/shape.h"
#include "io/file/crc32.h"
#include "io/store/store.h"
#include "tests/support/chunk_text.h"
#include "tests/support/made_store.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace flat_pieces_test {

const std::string kData = MCKPT_TEST_DATA;
const std::string kFlat = kData + "/rank_files/flat/pytorch_model_fsdp_rank";
const std::string kLocal = kData + "/own_names/accelerate_fsdp1_local/checkpoint/pytorch_model_fsdp_rank";

std::string text_of(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

// The file with another word of the same length in its pickle, and the pickle's new checksum.
std::string changed(std::string file, std::string_view from, std::string_view to) {
  auto bytes_of = [](u32 sum) { return std::string(reinterpret_cast<const char*>(&sum), sizeof sum); };
  auto sum_of = [](std::string_view text) {
    return crc32(0, {reinterpret_cast<const u8*>(text.data()), text.size()});
  };
  auto replace = [](std::string& text, std::string_view old, std::string_view now) {
    EXPECT_EQ(old.size(), now.size());
    i64 count = 0;
    for (std::size_t at = text.find(old); at != text.npos; at = text.find(old, at + 1), count++)
      text.replace(at, old.size(), now);
    return count;
  };
  const std::size_t begin = file.find("\x80\x02"), end = file.find("PK\x07\x08", begin);
  const std::string before = file.substr(begin, end - begin);
  std::string after = before;
  EXPECT_GT(replace(after, from, to), 0) << from;
  file.replace(begin, after.size(), after);
  // Behind the pickle, and in the directory
  EXPECT_EQ(replace(file, bytes_of(sum_of(before)), bytes_of(sum_of(after))), 2);
  return file;
}

std::string findings_of(const Store& store) {
  std::string out;
  for (const Finding& f : store.findings()) out += cat(f.file, "|", f.tensor, "|", f.message, "\n");
  return out;
}

TEST(FlatPieces, AreJoinedByTheirPlacesInTheUnit) {
  std::unique_ptr<Store> store = open_store(kData + "/rank_files/flat");
  EXPECT_TRUE(store->findings().empty()) << findings_of(*store);
  EXPECT_EQ(store->format(), Format::kTorchFlat);
  ASSERT_EQ(store->tensor_count(), 2);
  EXPECT_EQ(chunks_of(*store, "up.weight"), "0 [0]+[11] 1 [11]+[4] ");
  EXPECT_EQ(chunks_of(*store, "up.bias"), "1 [0]+[5] ");
  EXPECT_EQ(values_of(*store, find_tensor(*store, "up.weight")),
            (std::vector<i64>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}));
  EXPECT_EQ(values_of(*store, find_tensor(*store, "up.bias")), (std::vector<i64>{50, 51, 52, 53, 54}));
}

TEST(FlatPieces, OfOneFileAreShownAsPieces) {
  std::unique_ptr<Store> store = open_store(kFlat + "1.bin");
  EXPECT_EQ(store->format(), Format::kTorchFlat);
  EXPECT_EQ(chunks_of(*store, "up.weight"), "-1 [0]+[4] ");
  ASSERT_EQ(store->findings().size(), 1u);
  EXPECT_EQ(store->findings()[0].code, Code::kShardAlone);
  EXPECT_NE(store->findings()[0].message.find("rank 1 of 2"), std::string::npos);
}

TEST(FlatPieces, OfOtherFilesAreFound) {
  const std::string first = text_of(kFlat + "0.bin"), second = text_of(kFlat + "1.bin");
  struct {
    const char* what;
    std::string rank0, rank1, finding;
  } cases[] = {
      {"one file twice", first, first, "rank1.bin||by its name the file is of rank 1, but rank 0 wrote it"},
      {"a file of another model", first, text_of(kLocal + "1.bin"),
       "rank1.bin||most tensors of the file are not described"},
      // The bias has another name on rank 1, as in a save of another model with the same sizes.
      {"another name", first, changed(second, "up.bias", "up.bean"),
       "|up.bean|1 of 2 ranks have a piece of it"},
  };
  for (const auto& c : cases) {
    TempFolder folder;
    folder.put("pytorch_model_fsdp_rank0.bin", c.rank0);
    folder.put("pytorch_model_fsdp_rank1.bin", c.rank1);
    std::unique_ptr<Store> store = open_store(folder.path());
    EXPECT_NE(findings_of(*store).find(c.finding), std::string::npos)
        << c.what << ": " << findings_of(*store);
  }
  TempFolder folder;
  folder.put("pytorch_model_fsdp_rank1.bin", second);
  EXPECT_NE(findings_of(*open_store(folder.path()))
                .find("the first that is missing is pytorch_model_fsdp_rank0.bin"),
            std::string::npos);
}

// A parameter that no file names leaves items of the unit that are too many for padding.
TEST(FlatPieces, CoverTheirUnits) {
  EXPECT_EQ(findings_of(*open_store(kData + "/rank_files/flat_lost")),
            "||items 0 to 31 of _flat_param are of no tensor, and too many to be padding: a tensor is "
            "missing, or its piece "
            "is too short\n");
}

TEST(FlatPieces, WithoutNamesAreRefused) {
  for (const char* path : {"", "/pytorch_model_fsdp_rank1.bin"}) {
    const std::string told = thrown_by([&] { open_store(cat(kData, "/rank_files/flat_nameless", path)); });
    EXPECT_EQ(told.substr(0, 6), "MC1221") << told;
    EXPECT_NE(told.find("no tensor in it is a part of a flat parameter"), told.npos) << told;
  }
}

}  // namespace flat_pieces_test
}  // namespace mckpt::impl
