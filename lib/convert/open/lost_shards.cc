#include "convert/open/lost_shards.h"

#include <memory>
#include <optional>

#include "convert/open/openers.h"
#include "core/base/notes.h"
#include "hf/folder/known_tensors.h"
#include "hf/folder/model_folder.h"
#include "io/store/store.h"

namespace mckpt::impl {

void judge_shards(const Store& store, const OwnModelOptions& options, Notes& notes) {
  if (options.complete || !store.driver().open_ended) return;
  if (find_model_folder(store, options.source, options.assets).path.empty())
    return notes.warn(unknown_shards("no config.json is beside them"));
  const OwnModel judged =
      open_own_model(open_store(store.root(), store.opening()), {.source = options.source,
                                                                 .assets = options.assets,
                                                                 .model_dict = options.model_dict,
                                                                 .accept = options.accept,
                                                                 .apart = options.apart,
                                                                 .threads = options.threads});
  if (!judged.judged_by.empty()) return;
  for (const Note& n : judged.notes)
    if (n.kind == Note::Kind::kWarning) notes.warn(n.text);
}

}  // namespace mckpt::impl
