// The layers of a checkpoint under the names of its model's table, where the training run named them
// otherwise: a GPT model that was made a hybrid one, or a hybrid model whose layers are in groups. The
// pattern is in the args of the run, or follows from the names; nothing is copied.
//
//   args: hybrid_layer_pattern *-*-    decoder.layers.1.mlp.*  -->  decoder.layers.0.mlp.*
//         hybrid_layer_pattern [M-]*   decoder.layers.0.mlp.*  -->  decoder.layers.1.mlp.*           torch_dist
//                                                              -->  decoder.layers.0.layers.1.mlp.*  if groups stay
#pragma once

#include <memory>
#include <optional>

#include "core/base/int.h"

namespace mckpt::impl {

enum class DcpDialect : u8;
class ModelMap;
class PieceStore;
class Store;
struct LayerMigration;
struct LayerPattern;

// The migration to the names of the table or, with `groups`, to the names that a model with these groups has,
// by group and member. Nothing if the names are these already, of no known form, or of other layers. pre: the
// store is of fsdp_dtensor or torch_dist. Throws what migrate_layers() throws.
std::optional<LayerMigration> layers_as_in_model(const Store& store, const ModelMap& map,
                                                 const LayerPattern* groups, bool weights_only);

// The pattern of the run, if the model is its hybrid and the layers have the names that the format gives to
// layers in groups: by member in fsdp_dtensor, as in memory, and by group alone in torch_dist; else nothing.
// Where no args have a pattern, names by member show the groups and the model the layers in them. pre: the
// store is of fsdp_dtensor or torch_dist, or a state dict.
std::shared_ptr<const LayerPattern> pattern_of_groups(const Store& store, DcpDialect dialect,
                                                      const ModelMap& map);

// A view of the store under the new names. Objects that are files are in it only `with_files`. pre: the
// migration makes no stack of several tensors.
std::unique_ptr<PieceStore> migrated(std::unique_ptr<Store> store, const LayerMigration& migration,
                                     bool with_files = false);

// Whether the args contain a pattern with groups. False if they contain no pattern.
bool has_grouped_layers(const Store& store);

// The store under the names that its layers have without groups; the store itself if its names are flat
// already. pre: has_grouped_layers(), and the store is of torch_dist or fsdp_dtensor. Throws detect_form()'s
// and migrate_layers()'s faults.
std::unique_ptr<Store> with_flat_layers(std::unique_ptr<Store> store, DcpDialect dialect);

}  // namespace mckpt::impl
