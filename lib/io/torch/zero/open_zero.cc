// Opens a folder with the files of one save of DeepSpeed ZeRO as a store of whole parameters.
#include "core/base/error.h"
#include "io/file/folder.h"
#include "io/torch/zero/assembly.h"
#include "io/torch/zero/files.h"
#include "io/torch/zero/store.h"

namespace mckpt::impl {

std::unique_ptr<Store> open_zero(const std::string& path, const OpenOptions& opening) {
  Folder folder(path, opening);
  auto store = std::make_unique<ZeroStore>(folder.path(), opening);
  const ZeroSave save = read_zero_save(folder, *store);
  store->set_ranks(save.ranks);
  store->add_fact("zero stage", save.stage == 0 ? "none" : cat(save.stage));
  if (save.model().steps >= 0) store->add_fact("iteration", cat(save.model().steps));
  if (!save.model().version.empty()) store->add_fact("deepspeed", escaped(save.model().version));
  check_one_save(save, folder, *store);
  store->set_says_order(says_order(save));
  assemble_zero(save, *store);
  return store;
}

}  // namespace mckpt::impl
