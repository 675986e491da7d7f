// The layers of a checkpoint as the table of its model calls them, where the run had another form of them: a
// GPT model that was made a hybrid one, a hybrid model whose layers stand in groups. The args of the run tell
// its pattern; nothing is copied.
//
//   args: hybrid_layer_pattern *-*-    decoder.layers.1.mlp.*  -->  decoder.layers.0.mlp.*
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

// Nothing where the names are the table's, and where it is not known what they are. pre: the store is an
// fsdp_dtensor checkpoint. Throws what migrate_layers() does.
std::optional<LayerMigration> layers_as_in_model(const Store& store, const ModelMap& map, bool weights_only);

// The store under the names that its tensors and objects get. pre: no tensors become a stack.
std::unique_ptr<PieceStore> migrated(std::unique_ptr<Store> store, const LayerMigration& migration);

// Whether the args say that the layers are in groups. False where they say nothing.
bool has_grouped_layers(const Store& store);

// The store under the names that its layers have without groups; the store itself where its names are flat all
// the same. pre: has_grouped_layers(), of torch_dist or fsdp_dtensor. Throws what keeps layers from being
// renamed.
std::unique_ptr<Store> with_flat_layers(std::unique_ptr<Store> store, DcpDialect dialect);

}  // namespace mckpt::impl
