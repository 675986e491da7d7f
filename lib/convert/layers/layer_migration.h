// LayerMigration: what becomes of every tensor and object of a checkpoint whose layers get the names of
// another form. It is a list of pieces and names; nothing is read or written. No tensor is left out or made
// up in silence: one that has no place in the new form is a fault, unless the options leave it out.
//
//   indexed -> stacked   decoder.layers.<i>.X [a, b] of all layers   ->  decoder.layers.X [layers, a, b]
//   stacked -> indexed   decoder.layers.X [layers, a, b]             ->  decoder.layers.<i>.X [a, b]
//   whole -> parts       mixer.in_proj.weight [rows, h]              ->  mixer.in_proj.weight.z [z rows, h]
//                                                                        ...
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/int.h"
#include "core/hybrid/spellings.h"
#include "core/items/dtype.h"
#include "core/items/shape.h"

namespace mckpt::impl {

enum class DcpDialect : u8;
class LayerNames;
class Store;

// A tensor of the source, or a part of it, that becomes a tensor of the result, or a part of one. Layer 2 of
// a stack that becomes a tensor of its own is {tensor, from_layer 2}.
struct MovedPiece {
  i32 tensor = 0;
  i64 from_layer = -1;           // its index along a first dimension that the result does not have; -1: none
  i64 to_layer = -1;             // its index along a first dimension that the source does not have
  i64 first_row = 0, rows = -1;  // rows of the source; -1: all
};

// A tensor of the result and the pieces that make it up: one, or one for each layer of a stack.
struct MovedTensor {
  std::string name;
  DType dtype = DType::kU8;
  Shape shape;
  std::vector<MovedPiece> pieces;
};

// An object of the source under its new name; its bytes are copied.
struct MovedObject {
  i32 object = 0;  // of the source
  std::string name;
};

// The place of the norm before an attention or a dense MLP: in the layer, or fused with the linear layer
// after it, as TransformerEngine stores it and hybrid models expect it.
//
//   input_layernorm.weight    self_attention.linear_qkv.layer_norm_weight
//   pre_mlp_layernorm.weight  mlp.linear_fc1.layer_norm_weight              not of experts
enum class NormPlace : u8 { kKeep, kFused, kApart };

// Plain values; the defaults keep everything as it is.
struct MigrationOptions {
  bool weights_only = false;           // leave out the optimizer
  NormPlace norms = NormPlace::kKeep;  // for the layers of the main part
  std::optional<Spelling> spelling{};  // likewise; of fsdp_dtensor, which has other names. None: they stay
  bool without_mixers = false;         // from hybrid to GPT: leave them out; back: the result has none
};

// The whole migration, a value that refers to nothing. Tensors of the result are in the order of .metadata,
// the embedding first.
struct LayerMigration {
  std::vector<MovedTensor> tensors;
  std::vector<MovedObject> objects;
  std::vector<i64> dropped;                  // tensors of the source
  std::vector<std::string> dropped_objects;  // empty objects for which the new form has no name
};

// pre: the source is in the form `from`, as detect_form() found it, and all arguments outlive the call.
// Throws all faults of all keys together, as throw_faults() does.
LayerMigration migrate_layers(const Store& store, DcpDialect dialect, const LayerNames& from,
                              const LayerNames& to, const MigrationOptions& options);

}  // namespace mckpt::impl
