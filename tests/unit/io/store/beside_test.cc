// The list of what is beside a checkpoint: folders and links to them, each once.
#include "io/store/open/beside.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/base/text.h"
#include "io/store/store.h"
#include "tests/support/temp_folder.h"

namespace mckpt::impl {
namespace beside_test {

namespace fs = std::filesystem;

TEST(Beside, NamesAFolderByItsOwnNameAndNotByALink) {
  TempFolder folder;
  for (const char* step : {"step-9", "step-10", "step-100"}) {
    fs::create_directory(cat(folder.path(), "/", step));
    fs::copy_file(cat(MCKPT_TEST_DATA, "/rank_files/trainer/scheduler.bin"),
                  cat(folder.path(), "/", step, "/model.bin"));
  }
  fs::create_directory_symlink("step-10", cat(folder.path(), "/last"));
  fs::create_directory_symlink("step-9", cat(folder.path(), "/newest"));
  auto beside = [&](const char* chosen) {
    std::unique_ptr<Store> store = open_store(cat(folder.path(), "/", chosen));
    std::string out;
    for (const std::string& name : checkpoints_beside(folder.path(), *store)) out += name + " ";
    return out;
  };
  EXPECT_EQ(beside("step-9"), "step-10 step-100 ");
  EXPECT_EQ(beside("step-100"), "step-9 step-10 ");
}

// A program could load them, and no store is opened of them.
TEST(Beside, TellsWhatMayBeACheckpointAndIsNotLookedAt) {
  TempFolder folder;
  for (const char* name : {".more", ".git"}) fs::create_directory(folder.at(name));
  for (const char* name : {"model.safetensors", ".old.safetensors", ".more/state.pt", ".git/config", ".notes",
                           "._model.safetensors", "notes.txt"})
    folder.put(name, "x");
  fs::create_symlink("nowhere", cat(folder.path(), "/gone.pt"));
  fs::create_symlink("nowhere", cat(folder.path(), "/gone.txt"));
  std::string out;
  for (const Beside& b : list_beside(folder.path(), nullptr, {})) {
    const char* kind = b.kind == Beside::Kind::kCheckpoint ? "checkpoint"
                       : b.kind == Beside::Kind::kUnread   ? "unread"
                                                           : "other";
    out += cat(b.path, "=", kind, b.reason.empty() ? "" : cat(" (", b.reason, ")"), " ");
  }
  EXPECT_EQ(
      out,
      ".more=unread (a hidden folder) .old.safetensors=unread (a hidden file) gone.pt=unread (a broken link) "
      "gone.txt=other (a broken link) model.safetensors=checkpoint notes.txt=other ");
}

}  // namespace beside_test
}  // namespace mckpt::impl
