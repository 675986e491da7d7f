// Names in the wrapped model are those in memory, so no names of the folder are needed.
#include "convert/open/without_wrappers.h"

#include "hf/adapter/lora/base_facts.h"
#include "hf/adapter/wrapped_model.h"
#include "hf/folder/model_folder.h"
#include "io/store/store.h"

namespace mckpt::impl {

std::unique_ptr<Store> without_wrappers(std::unique_ptr<Store> store, const std::string& source,
                                        const std::optional<std::string>& assets) {
  if (!is_wrapped_model(*store)) return store;
  const ModelFolder folder = find_model_folder(*store, source, assets);
  return unwrapped_model(
      std::move(store),
      {.model_type = folder.model_type, .architecture = folder.architecture, .tied = folder.tied});
}

}  // namespace mckpt::impl
