// Opens a folder with the files of one save of DeepSpeed ZeRO as a store of whole parameters.
#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "io/file/folder.h"
#include "io/zero/assembly.h"
#include "io/zero/files.h"
#include "io/zero/store.h"
#include "io/zero/tensor_parallel.h"

namespace mckpt::impl {
namespace {

// Nothing but the names says which tensor-parallel rank a file is of.
bool says_rank_names(const ZeroSave& save) {
  return std::ranges::all_of(save.models, [](const auto& m) { return m.says_rank; }) &&
         std::ranges::all_of(save.optimizers, [](const auto& o) { return o.says_rank; });
}

}  // namespace

std::unique_ptr<Store> open_zero(const std::string& path, const OpenOptions& opening) {
  Folder folder(path, opening);
  auto store = std::make_unique<ZeroStore>(folder.path(), opening);
  const std::vector<ZeroSave> saves = read_zero_saves(folder, *store);
  const ZeroSave& first = saves[0];
  const bool split = is_tensor_parallel(saves);
  store->set_ranks(first.ranks * (split ? std::max<i64>(first.model().model_ranks, 1) : 1));
  store->add_fact("zero stage", first.stage == 0 ? "none" : cat(first.stage));
  if (split) store->add_fact("tensor-parallel ranks", cat(first.model().model_ranks));
  if (first.model().steps >= 0) store->add_fact("iteration", cat(first.model().steps));
  if (!first.model().version.empty()) store->add_fact("deepspeed", escaped(first.model().version));
  bool says = true;
  for (const ZeroSave& save : saves) {
    check_one_save(save, folder, *store);
    says &= says_order(save) && (!split || says_rank_names(save));
  }
  store->traits.says_rank_order = says;
  if (split) {
    assemble_tensor_parallel(saves, folder, *store);
    return store;
  }
  if (const i64 copies = assemble_zero(first, *store).copies; copies > 0)
    store->add_fact("copies", cat(counted(copies, "tensor"), " of ",
                                  first.experts.empty() ? "'module'" : "'module' and the files of experts",
                                  ", with which training computes, not listed"));
  return store;
}

}  // namespace mckpt::impl
