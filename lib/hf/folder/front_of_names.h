// transformers loads tensors whose names lack the front of the base model, and tensors that have it once more
// than the class (base_model_prefix). A Qwen3Model beside the config of a Qwen3ForCausalLM lacks it.
//
//   the class                      the file
//   model.layers.0.mlp.w.weight    layers.0.mlp.w.weight           gets the front
//   lm_head.weight                 model.lm_head.weight            loses it
//
// The front is "model." for every class of transformers that mckpt has a table of. For models with images,
// whose names in memory are others than in their files, the rule gives other tensors, and is not used.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mckpt::impl {

class Store;

// A store under the names of the class. `how` the names in the files differ from these: "lack the 'model.' in
// front ...". Where they do not differ, `store` is null and `how` "".
struct FrontedStore {
  std::unique_ptr<Store> store;
  std::string_view how;
};

// One model that is read so: "the files", or a path.
struct FrontedNames {
  std::string where;
  std::string_view how;
};
// The sentence about such models: "names in the files lack the 'model.' in front that the class has: read as
// transformers loads them, under the names of the class".
std::string fronted_text(const std::vector<FrontedNames>& models);

// The store under the names of the class, whose tensors `expected` lists; none for models that are not of
// text alone, and where no tensor would get another name, or two the same one. Parts of names decide, so that
// experts may be stored in any form. `base_class`: whether it may be a class without the front.
FrontedStore with_front_of_class(const std::shared_ptr<const Store>& store,
                                 const std::vector<std::string_view>& expected, bool base_class = false);

}  // namespace mckpt::impl
