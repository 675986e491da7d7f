// The keys of DCP folders, taken apart: the section (model, optimizer), wrappers, the parameter, the field.
//
//   fsdp_dtensor   model.module.                         decoder.layers.0.mlp.linear_fc1.weight_w
//                  optimizer.state.module.module.module. decoder.layers.0.mlp.linear_fc1.weight   .exp_avg
//   torch_dist     optimizer.state.exp_avg.              decoder.layers.mlp.linear_fc1.weight
//                                                        decoder.layers.mlp.linear_fc1._extra_state /shard_1_2
//                  '- section, wrappers, field -'        '------ parameter ------'           '- field, tail -'
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

enum class DcpDialect : u8;

// The keys of an optimizer begin with these. kGroupMetaSection has the fields of a parameter's group, one
// object each; kGroupListSection has the groups as a list.
inline constexpr std::string_view kStateSection = "optimizer.state.",
                                  kGroupMetaSection = "optimizer.param_to_group_meta.",
                                  kGroupListSection = "optimizer.param_groups.";
// Where the first dot of these is.
inline constexpr i32 kOptimizerDot = static_cast<i32>(std::string_view("optimizer").size());
// The names that fsdp_dtensor puts in front of a parameter, as mckpt writes them.
inline constexpr std::string_view kModelFront = "model.module.",
                                  kStateFront = "optimizer.state.module.module.module.",
                                  kGroupMetaFront = "optimizer.param_to_group_meta.module.module.module.";

// Whether the key belongs to an optimizer, in any section.
bool is_optimizer_key(std::string_view key);
// The first part of a name, without a number behind it: "optimizer" of "optimizer_0.state.0.exp_avg".
std::string_view section_word(std::string_view name);
// Whether a name belongs to an optimizer, also "optim.state.0.exp_avg", which is not Megatron's, or "app.".
bool is_of_optimizer(std::string_view name);
// Removes "model." or, of a run with virtual pipeline stages, "model2."; false if the key begins otherwise.
bool take_model(std::string_view& key);
// Removes every "module." in front. Wrappers of a model each add one, so their number depends on the run.
void take_wrappers(std::string_view& key);

// A key in its parts. The views point into the key.
struct DcpKey {
  enum class Section : u8 { kOther, kModel, kState, kGroupMeta };
  Section section = Section::kOther;
  std::string_view
      parameter;           // without "model." and any "module.": "decoder.layers.0.mlp.linear_fc1.weight_w"
  std::string_view field;  // of kState "exp_avg" and the like, of kGroupMeta "lr" and the like
};
// Splits a key of that dialect; kOther for a key that is none of model, state or group meta.
DcpKey split_key(DcpDialect dialect, std::string_view key);

// A key as front, name and tail, so that the name of a parameter can be changed and what is around it is
// kept; front + name + tail is the key. `name` is empty if the key does not belong to a parameter.
struct KeySection {
  std::string_view front, name, tail;
  bool optimizer = false;

  bool model() const { return !optimizer && !name.empty(); }
};
// pre: the dialect is fsdp_dtensor or torch_dist.
KeySection key_section(DcpDialect dialect, std::string_view key);

// The name without the sections and wrappers in front of it: "model.module.a.b" and "model.a.b" are "a.b".
// Nothing for a key of another section. The layers of MTP have their usual name in
// the result, whichever of the two the key has (core/hybrid/mtp_names.h).
std::optional<std::string> model_key(std::string_view name);

// The name of an optimizer's state, "optimizer.state.module.module.module.<key>.<state>": the key without
// wrappers, and the positions of the dots that separate nested dictionaries.
struct StateName {
  std::string key;
  std::vector<i32> dots;
};
// Nothing for a tensor that is not an optimizer's state.
std::optional<StateName> state_name(std::string_view name);

// An object of an optimizer's groups: "optimizer.param_groups.0.lr" is the field "lr" of group "0". A group
// that torch flattened has the name of its one parameter instead of a number. The views point into the name.
struct GroupField {
  std::string_view group, field;
};
// Nothing for any other name.
std::optional<GroupField> group_field(std::string_view object);

// The parameter that a half of a gated tensor ("..._w", "..._v") was split from; the same text for any
// other name. `half` becomes 'w', 'v' or 0.
std::string_view unsplit(std::string_view parameter, char& half);

// The parameter of the running model that a stored piece was split from: gated halves, the parts of a gated
// delta net, the fused down projection of multi-latent attention (MLA).
std::string parameter_of_piece(std::string_view parameter);

// The number behind the first `stem` that is followed by one: numbered("decoder.layers.12.mlp", "layers.")
// is 12, with the text before it ("decoder.layers.") and after it (".mlp").
struct Numbered {
  std::string_view before, after;
  i64 number = 0;
};
std::optional<Numbered> numbered(std::string_view name, std::string_view stem);

// Which part of an object that many ranks or layers share is stored under a key of torch_dist:
// "/shard_<offset>_<shape>", each with a number a dimension.
struct ObjectShard {
  std::vector<i64> offset, shape;
};
// Nothing if the tail is not of this form.
std::optional<ObjectShard> object_shard(std::string_view tail);
std::string to_string(const ObjectShard& shard);  // "/shard_0.1_2.4"

// The positions of the dots that separate the keys of the nested dictionaries from which an fsdp_dtensor key
// was saved, by the sections that Megatron writes. Other dots are part of a name:
//
//   model.module.decoder.weight               -->  5              {"model": {"module.decoder.weight": ...}}
//   rng_state.0.0                             -->  9 11           {"rng_state": {"0": {"0": ...}}}
std::vector<i32> nesting_dots(std::string_view key);

}  // namespace mckpt::impl
