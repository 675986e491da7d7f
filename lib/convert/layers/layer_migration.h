// LayerMigration: what becomes of every tensor and object of a checkpoint whose layers get the names of
// another form. Nothing is left out or made up in silence: what has no place there is a fault, unless it was
// said to be left out.
//
//   indexed -> stacked   decoder.layers.<i>.X [a, b] of all layers   ->  decoder.layers.X [layers, a, b]
//   stacked -> indexed   the same backwards
//   whole -> parts       mixer.in_proj.weight [rows, h]              ->  mixer.in_proj.weight.z [z rows, h]
//   ...
#pragma once

#include "core/base/int.h"
#include "core/items/dtype.h"
#include "core/items/shape.h"

namespace mckpt::impl {

enum class DcpDialect : u8;
class LayerNames;
class Store;

// A tensor of the source, or a part of it, as a part of the result or all of it.
struct MovedPiece {
  i32 tensor = 0;
  i64 from_layer = -1;  // its index along a first dimension that the result does not have; -1: none
  i64 to_layer = -1;    // its index along a first dimension that the source does not have
  i64 first_row = 0, rows = -1;  // rows of the source; -1: all
};

struct MovedTensor {
  std::string name;
  DType dtype = DType::kU8;
  Shape shape;
  std::vector<MovedPiece> pieces;
};

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

struct MigrationOptions {
  bool weights_only = false;           // leave the optimizer behind
  NormPlace norms = NormPlace::kKeep;  // of the main part's layers
  bool without_mixers = false;         // from hybrid to GPT: leave them behind; back: the result has none
};

struct LayerMigration {
  std::vector<MovedTensor> tensors;
  std::vector<MovedObject> objects;
  std::vector<i64> dropped;                  // tensors of the source
  std::vector<std::string> dropped_objects;  // that hold nothing and that the new form has no name for
};

// pre: the source is in the form `from`, as detect_form() found it. Throws throw_faults().
LayerMigration migrate_layers(const Store& store, DcpDialect dialect, const LayerNames& from,
                              const LayerNames& to, const MigrationOptions& options);

}  // namespace mckpt::impl
