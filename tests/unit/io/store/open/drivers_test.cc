#include "io/store/driver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/base/text.h"
#include "io/dcp/keys/dialect.h"
#include "io/file/folder.h"
#include "io/store/open/file_look.h"
#include "io/store/open/folder_look.h"
#include "io/store/open/format_ids.h"
#include "tests/support/temp_folder.h"

namespace mckpt::impl::drivers_test {
namespace {

TEST(Drivers, AreByTheirNumbersAndHaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  std::set<int> turns;
  for (const Driver& d : all_drivers()) {
    EXPECT_EQ(&driver_of(d.format), &d) << d.name;
    EXPECT_TRUE(names.insert(d.name).second) << d.name;
    EXPECT_EQ(d.name.data()[d.name.size()], '\0') << d.name;
    EXPECT_EQ(d.is_file != nullptr, d.open_file != nullptr) << d.name;
    if (d.open_folder != nullptr) {
      EXPECT_NE(d.is_folder, nullptr) << d.name;
      EXPECT_TRUE(turns.insert(d.turn).second) << d.name << " has the turn of another row";
    }
    EXPECT_TRUE(d.reads || (d.is_file == nullptr && d.open_folder == nullptr)) << d.name;
    EXPECT_EQ(d.dialect.has_value(), d.family == FormatFamily::kDcp) << d.name;
    EXPECT_TRUE(!d.dialect || dcp_format(*d.dialect) == d.format) << d.name;
    EXPECT_TRUE(!d.hf_folder || d.hf_weights) << d.name;
  }
}

// The rows that take a folder with these names, by turn.
std::string takers(const std::vector<std::string>& names) {
  TempFolder made;
  for (const std::string& name : names)
    if (name.ends_with('/'))
      std::filesystem::create_directories(made.at(name));
    else
      made.put(name, "x");
  const Folder folder(made.path());
  const FolderLook look(folder);
  std::vector<const Driver*> rows;
  for (const Driver& d : all_drivers())
    if (d.is_folder != nullptr && d.is_folder(look)) rows.push_back(&d);
  std::ranges::stable_sort(rows, {}, &Driver::turn);
  std::string out;
  for (const Driver* d : rows) out += cat(out.empty() ? "" : ", ", d->name);
  return cat(out, look.is_checkpoint() ? "" : " (unsure)");
}

TEST(Drivers, TakeFoldersByTheirNames) {
  EXPECT_EQ(takers({}), " (unsure)");
  EXPECT_EQ(takers({"README.md"}), " (unsure)");
  EXPECT_EQ(takers({"a.safetensors"}), "safetensors folder");
  EXPECT_EQ(takers({"a.safetensors/"}), " (unsure)");
  EXPECT_EQ(takers({"model.safetensors.index.json"}), "safetensors folder");
  EXPECT_EQ(takers({".metadata", "a.safetensors", "x.pt"}),
            "torch.save, several files, DCP, safetensors folder");
  EXPECT_EQ(takers({"__0_0.distcp"}), "DCP");
  EXPECT_EQ(takers({"__0.metadata"}), "DCP");
  EXPECT_EQ(takers({"notes.metadata", "a.safetensors"}), "safetensors folder");
  EXPECT_EQ(takers({"metadata.pkl"}), "torch.save, one file a rank (unsure)");
  EXPECT_EQ(takers({"latest"}), "DeepSpeed's folder of saves (unsure)");
  EXPECT_EQ(takers({"mp_rank_00/"}), "Megatron per-rank .pt");
  EXPECT_EQ(takers({"latest_checkpointed_iteration.txt", "iter_0000010/"}),
            "Megatron run, Megatron run without its tracker file");
  EXPECT_EQ(takers({"iter_0000010/", "iter_0000020/"}), " (unsure)");
  EXPECT_EQ(takers({"ckpt_contents.json", "model/"}), "verl's folder of parts");
  EXPECT_EQ(takers({"snapshots/"}), "a part of a hub cache");
}

// The row that opens a file.
std::string_view taker(std::string_view name, std::string_view bytes) {
  const std::span<const u8> data(reinterpret_cast<const u8*>(bytes.data()), bytes.size());
  const MemorySource file(data);
  const FileLook look{name, sniff(file), file};
  for (const Driver& d : all_drivers())
    if (d.is_file != nullptr && d.is_file(look)) return d.name;
  return "";
}

TEST(Drivers, TakeFilesByTheirFirstBytesAndThenByTheirNames) {
  using namespace std::string_view_literals;
  EXPECT_EQ(taker("x", "\x08\0\0\0\0\0\0\0{}      "sv), "safetensors");
  EXPECT_EQ(taker("x", "PK\x03\x04 and more than ten bytes"), "torch.save zip");
  EXPECT_EQ(taker("x.safetensors", "PK\x03\x04 and more than ten bytes"), "torch.save zip");
  EXPECT_EQ(taker("x", "\x89HDF\r\n\x1a\n"sv), "HDF5");
  EXPECT_EQ(taker("x.safetensors", "nothing that is known"), "safetensors");
  EXPECT_EQ(taker("x.pt", "nothing that is known"), "torch.save zip");
  EXPECT_EQ(taker("x.h5", "nothing that is known"), "HDF5");
  EXPECT_EQ(taker("x.pt", "GGUF and more than ten bytes"), "");
  EXPECT_EQ(taker("x.txt", "nothing that is known"), "");
}

TEST(FileLook, FindsTheFirstBytesOfAnUnknownFormat) {
  const std::vector<u8> bytes = {'D', 'U', 0xff};
  const MemorySource file(bytes);
  const FileLook look{"x", sniff(file), file};
  EXPECT_TRUE(look.begins_with("DU"));
  EXPECT_TRUE(look.begins_with("DU\xff"));
  EXPECT_FALSE(look.begins_with("DX"));
  EXPECT_FALSE(look.begins_with("DU\xff."));
}

}  // namespace
}  // namespace mckpt::impl::drivers_test
