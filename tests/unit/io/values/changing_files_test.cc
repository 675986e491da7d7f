// Files that change while they are read: every reader gives an error that names the file, whatever is gone
// and whenever.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "core/base/error.h"
#include "io/dcp/item.h"
#include "io/safetensors/table.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
#include "io/torch/file.h"
#include "io/values/digest.h"
#include "io/values/tensor_stats.h"
#include "io/verify/verify.h"
#include "tests/support/safetensors_text.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"
#include "tests/support/torch_builder.h"

namespace mckpt::impl {
namespace {

namespace fs = std::filesystem;

std::string text_of(const std::vector<u8>& bytes) { return {bytes.begin(), bytes.end()}; }

std::string small_safetensors() {
  return safetensors_file(cat("{", safetensors_entry("w", "F32", "2,3", 0, 24), "}"), six_floats());
}

// Reads the file once for every length that it may have shrunk to since it was opened.
template <typename Read>
void shrink_while_reading(const std::string& bytes, Read&& read) {
  TempFolder folder;
  i64 failures = 0;
  for (std::size_t left = 0; left < bytes.size(); left++) {
    std::string path = folder.put("file", bytes);
    InputFile file(path);
    ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(left)), 0);
    try {
      read(file);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kReadFailed) << e.what() << " with " << left << " bytes left";
      failures++;
    }
  }
  // A change in front cannot be missed.
  EXPECT_GT(failures, 8);
}

TEST(ChangingFiles, ThatShrinkAreReadFailures) {
  shrink_while_reading(small_safetensors(), [](const InputFile& f) { SafetensorsTable table(f); });
  shrink_while_reading(text_of(zip_with({})), [](const InputFile& f) { read_torch_file(f); });
  shrink_while_reading(text_of(zip_with({})), [](const InputFile& f) {
    i64 dims[] = {2, 3};
    read_dcp_item(f, DType::kF32, dims);
  });
}

// A copy of some checkpoint of test_data, opened.
class OpenStore {
 public:
  explicit OpenStore(const std::string& of, const OpenOptions& opening = {})
      : path_(folder_.path() + "/" + fs::path(of).filename().string()) {
    fs::copy(cat(MCKPT_TEST_DATA, "/", of), path_, fs::copy_options::recursive);
    store = open_store(path_, opening);
  }
  std::string file(std::size_t f) const {
    const std::string& name = store->files()[f].path;
    return name.empty() ? path_ : path_ + "/" + name;
  }
  std::string digest() const {
    std::vector<i64> all;
    for (i64 t = 0; t < store->tensor_count(); t++) all.push_back(t);
    return thrown_by([&] { tensor_digests(*store, all, 2); });
  }
  std::string stats() const {
    i64 first[] = {0};
    return thrown_by([&] { tensor_stats(*store, first, 4, 1, [](i64) {}); });
  }

  std::unique_ptr<Store> store;

 private:
  TempFolder folder_;
  std::string path_;
};

constexpr const char* kStores[] = {"pt/zip.pt", "pt/legacy.pt", "models/tiny_qwen3_moe", "dcp/plain",
                                   "dcp/fsdp2"};

TEST(ChangingFiles, ThatShrankSinceTheStoreWasOpenedAreTold) {
  for (const char* name : kStores) {
    OpenStore s(name);
    ASSERT_EQ(s.digest(), "nothing") << name;
    fs::resize_file(s.file(0), fs::file_size(s.file(0)) / 2);
    EXPECT_NE(s.digest().find("MC1002"), std::string::npos) << name << ": " << s.digest();
    EXPECT_NE(s.stats().find("MC1002"), std::string::npos) << name << ": " << s.stats();
    VerifyReport report = verify_store(*s.store, 1, [](i64) {});
    EXPECT_FALSE(report.sound()) << name;
  }
}

TEST(ChangingFiles, OfTheSameLengthAreToldWhenAllIsRead) {
  for (const char* name : kStores) {
    OpenOptions opening{.stamps = std::make_shared<SourceStamps>()};
    OpenStore s(name, opening);  // its data are not read yet
    EXPECT_EQ(thrown_by([&] { check_unchanged(opening); }), "nothing");
    fs::last_write_time(s.file(0), fs::last_write_time(s.file(0)) + std::chrono::seconds(1));
    EXPECT_NE(thrown_by([&] { check_unchanged(opening); }).find("the file was changed while it was read"),
              std::string::npos);
  }
}

// More files than are kept open: one that is opened again is still the one that it was.
TEST(ChangingFiles, AreNoticedWhenTheyAreOpenedAgain) {
  OpenOptions opening{.stamps = std::make_shared<SourceStamps>()};
  TempFolder folder;
  for (i64 i = 100; i < 400; i++)
    folder.put(cat("m/f", i, ".safetensors"),
               safetensors_file(cat("{", safetensors_entry(cat("w", i), "U8", "1", 0, 1), "}"), "x"));
  std::unique_ptr<Store> store = open_store(folder.path() + "/m", opening);
  ASSERT_EQ(store->files().size(), 300u);
  StoreFiles files(*store);
  for (i32 f = 0; f < 300; f++) files.open(f);
  EXPECT_EQ(thrown_by([&] { files.open(0), check_unchanged(opening); }), "nothing");
  std::string second = cat(folder.path(), "/m/", store->files()[1].path);
  fs::last_write_time(second, fs::last_write_time(second) + std::chrono::seconds(1));
  EXPECT_NE(thrown_by([&] { files.open(1); }).find("the file was changed while it was read"),
            std::string::npos);
}

}  // namespace
}  // namespace mckpt::impl
