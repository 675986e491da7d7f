// Which files of a folder are the save, and how tensors of several ranks are named; and when copies of ranks
// are one tensor. Files are small archives of torch.save with one tensor each, of six floats.
#include "io/ranks/rank_folder.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/base/text.h"
#include "io/file/folder.h"
#include "io/ranks/copies.h"
#include "io/store/open/format_ids.h"
#include "io/torch/files.h"
#include "io/torch/store.h"
#include "tests/support/temp_folder.h"
#include "tests/support/torch_builder.h"

namespace mckpt::impl {
namespace rank_folder_test {

// {name: tensor}; the items are `first`, first + 1 and so on.
std::string file_of(const std::string& name, float first, const TensorParts& parts = {}) {
  std::string floats;
  for (int i = 0; i < 6; i++) {
    const float value = first + static_cast<float>(i);
    floats.append(reinterpret_cast<const char*>(&value), 4);
  }
  const std::vector<u8> zip =
      torch_zip({{"data.pkl", whole_pickle(pickled_dict({{name, pickled_tensor(parts)}}))},
                 {"byteorder", "little"},
                 {"data/0", floats},
                 {"version", "3\n"}});
  return {zip.begin(), zip.end()};
}

// A folder of files of ranks, opened; a line for each tensor with the ranks of its chunks.
struct Opened {
  explicit Opened(const std::vector<std::pair<std::string, std::string>>& files) : folder(put(files)) {
    std::vector<std::string> names;
    for (const auto& [name, bytes] : files) names.push_back(name);
    std::vector<OpenedTorchFile> opened = open_torch_files(folder, names);
    add_rank_files(store, folder, opened, {});
  }
  Folder put(const std::vector<std::pair<std::string, std::string>>& files) {
    for (const auto& [name, bytes] : files) t.put(name, bytes);
    return Folder(t.path(), {});
  }
  std::string tensors() const {
    std::string out;
    for (i64 i = 0; i < store.tensor_count(); i++) {
      out += cat(store.name(i), ":");
      for (i64 c = 0; c < store.chunk_count(i); c++) out += cat(" ", store.chunk(i, c).rank);
      out += "; ";
    }
    return out;
  }
  std::string findings() const {
    std::string out;
    for (const Finding& f : store.findings())
      out += cat(code_name(f.code), " ", f.file, ": ", f.message, "; ");
    return out;
  }
  TempFolder t;
  Folder folder;
  TorchStore store{t.path(), Format::kTorchRanks, {}};
};

TEST(RankFolder, ReadsTheModelUnderItsNamesAndOthersUnderTheirGroup) {
  const Opened o({{"model_world_size_2_rank_0.pt", file_of("w", 1)},
                  {"model_world_size_2_rank_1.pt", file_of("w", 1)},
                  {"optim_world_size_2_rank_0.pt", file_of("m", 5)},
                  {"optim_world_size_2_rank_1.pt", file_of("m", 5)}});
  EXPECT_EQ(o.tensors(), "w: 0 1; optim:m: 0 1; ");
  EXPECT_EQ(o.findings(), "");
  EXPECT_EQ(o.store.ranks(), 2);
}

TEST(RankFolder, NamesBothModelsByTheirGroup) {
  const Opened o({{"a_rank_0.pt", file_of("w", 1)}, {"b_rank_0.pt", file_of("w", 2)}});
  EXPECT_EQ(o.tensors(), "a:w: 0; b:w: 0; ");
}

TEST(RankFolder, TakesTheCompleteSetOfTwoJobs) {
  const Opened o({{"model_world_size_2_rank_0.pt", file_of("w", 1)},
                  {"model_world_size_2_rank_1.pt", file_of("w", 1)},
                  {"model_world_size_4_rank_0.pt", file_of("w", 7)},
                  {"model_world_size_4_rank_1.pt", file_of("w", 7)},
                  {"model_world_size_4_rank_2.pt", file_of("w", 7)}});
  EXPECT_EQ(o.store.ranks(), 2);
  EXPECT_EQ(o.tensors(), "w: 0 1; ");
  const std::string found = o.findings();
  for (const char* rank : {"0", "1", "2"})
    EXPECT_NE(found.find(cat("model_world_size_4_rank_", rank, ".pt: the file is of another save")),
              found.npos)
        << found;
}

TEST(RankFolder, NamesTheFirstFileThatIsMissing) {
  const Opened o(
      {{"model_world_size_4_rank_0.pt", file_of("w", 1)}, {"model_world_size_4_rank_3.pt", file_of("w", 1)}});
  const std::string found = o.findings();
  EXPECT_NE(found.find("files of model are missing: 2 of 4 ranks are there; the first that is missing is "
                       "model_world_size_4_rank_1.pt"),
            found.npos)
      << found;
}

TEST(RankFolder, FindsAnOptimizerOfAnotherNumberOfRanks) {
  const Opened o({{"model_world_size_1_rank_0.pt", file_of("w", 1)},
                  {"optim_world_size_2_rank_0.pt", file_of("m", 5)},
                  {"optim_world_size_2_rank_1.pt", file_of("m", 5)}});
  const std::string found = o.findings();
  EXPECT_NE(found.find("one of 2 ranks, but the model's files are of 1"), found.npos) << found;
}

// No tensor of the save is in pieces, so ranks may hold tensors of their own.
TEST(RankFolder, KeepsATensorOfEachRankWhereTheyDiffer) {
  const Opened o(
      {{"model_world_size_2_rank_0.pt", file_of("w", 1)}, {"model_world_size_2_rank_1.pt", file_of("w", 3)}});
  EXPECT_EQ(o.tensors(), "rank_0:w: 0; rank_1:w: 1; ");
  EXPECT_EQ(o.findings(), "");
}

// Two files as one store's, and whether row 0 of each is the same.
TorchCopies::Answer compared(const std::string& one, const std::string& other, std::string* text = nullptr) {
  TempFolder t;
  t.put("0.pt", one);
  t.put("1.pt", other);
  const Folder folder(t.path(), {});
  TorchStore store(t.path(), Format::kTorchRanks, {});
  std::vector<OpenedTorchFile> files = open_torch_files(folder, {"0.pt", "1.pt"});
  for (OpenedTorchFile& f : files) store.add_file(f.path, f.bytes, std::move(f.file.value()));
  TorchCopies copies(store, folder);
  if (text) *text = copies.text({1, 0});
  return copies.compare({0, 0}, {1, 0});
}

TEST(TorchCopies, AreComparedBySumsAndElseByBytes) {
  using enum TorchCopies::Answer;
  std::string first;
  EXPECT_EQ(compared(file_of("w", 1), file_of("w", 1), &first), kEqual);
  EXPECT_EQ(first, "1");
  EXPECT_EQ(compared(file_of("w", 1), file_of("w", 4), &first), kDifferent);
  EXPECT_EQ(first, "4");
  const TensorParts other_shape{.size = {3, 2}, .stride = {2, 1}},
      row{.offset = 3, .size = {3}, .stride = {1}}, first_row{.size = {3}, .stride = {1}},
      column{.offset = 1, .size = {2}, .stride = {3}};
  EXPECT_EQ(compared(file_of("w", 1), file_of("w", 1, other_shape)), kDifferent);
  // Items 4, 5, 6 of one record and 4, 5, 6 of another, at other places: the sums differ, the bytes decide.
  EXPECT_EQ(compared(file_of("w", 1, row), file_of("w", 4, first_row)), kEqual);
  EXPECT_EQ(compared(file_of("w", 1, row), file_of("w", 1, first_row)), kDifferent);
  EXPECT_EQ(compared(file_of("w", 1, column), file_of("w", 1, column), &first), kEqual);
  EXPECT_EQ(first, "2");
}

}  // namespace rank_folder_test
}  // namespace mckpt::impl
