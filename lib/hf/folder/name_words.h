// Words in the names of tensors that are of no model, and of the wrappers of modules.
#pragma once

#include <string>
#include <string_view>

namespace mckpt::impl {

// Whether a name is one of an optimizer, a scheduler, a loader, a random state or a counter.
bool is_beside_model(std::string_view name);

// Whether any part of a name, with what follows, is one of an optimizer.
bool is_in_optimizer(std::string_view name);

// Whether a name is one of an optimizer's states: is_in_optimizer(), or its last part is a moment's.
bool is_of_states(std::string_view name);

// Whether a part of such a name says that it is a state. Other names prove nothing:
// "optimizer.proj.weight" and a whole name "step" may be a module's.
bool is_certain_state(std::string_view name);

// Whether a name is one of a whole model, as "model.norm.weight" and "lm_head.weight" are: a front "model."
// of it is a section, and not the first part of the model's own names.
bool is_of_whole_model(std::string_view name);

// Whether a name is of a buffer that most models compute from the config, and do not store. A few store them
// (EsmModel): then the model's folder lists them.
bool is_computed(std::string_view name);
// Whether no folder of today has it either: the buffers of rotary_pos_emb (CLVP) or x_pos_emb (BROS) are in
// folders, and are loaded.
bool is_computed_by_all(std::string_view name);

// "model.layers.0._orig_mod.mlp.w" is "model.layers.0.mlp.w".
std::string without_wrappers(std::string_view name);

// Calls `visit` for each part of a name: "a.b.c" has three.
template <typename Visit>
void each_part(std::string_view name, Visit&& visit) {
  while (true) {
    std::size_t dot = name.find('.');
    visit(name.substr(0, dot));
    if (dot == name.npos) return;
    name.remove_prefix(dot + 1);
  }
}

}  // namespace mckpt::impl
