// A model that was saved with an adapter of PEFT around it, as its base with the adapter in it
// (hf/adapter/wrapped_model.h). The config.json of its folder says which of its tensors are one parameter.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace mckpt::impl {

class Store;

// `source`: the checkpoint as the user named it. `assets`: a folder with config.json; none: where training
// frameworks put it. Any other store is returned as it is. Throws what find_model_folder() and
// unwrapped_model() throw.
std::unique_ptr<Store> without_wrappers(std::unique_ptr<Store> store, const std::string& source,
                                        const std::optional<std::string>& assets);

}  // namespace mckpt::impl
