// A checkpoint of torch FSDP2, or of Megatron-FSDP by itself, as the tensors of an fsdp_dtensor checkpoint,
// and the facts of its run. These programs save plain state dicts, with the names of the model and without
// Megatron's sections:
//
//   model.<param>
//       -->  model.module.<param>, gated ones in halves where the model is known
//
//   optimizer.state.<param>.exp_avg
//       -->  optimizer.state.module.module.module.<param>.exp_avg
//
//   optimizer.param_groups.0.params and .lr, optimizer.state.<param>.step
//       -->  options of each <param>: lr and step
//
// If the model is known, the view has no tensor for the step: Megatron's optimizer has the step only in the
// group.
#pragma once

#include "convert/facts/translated_run.h"
#include "convert/keys/key_table.h"
#include "core/base/int.h"

namespace mckpt::impl {

enum class DcpDialect : u8;
class ModelMap;
class Store;
struct LayerPattern;

// `map` null: the model is not known, or parameters are wanted whole: every tensor stays as it is.
// `keep_groups`: the groups of the optimizer stay as they are too. `cells` is the number of ranks that wrote
// fused tensors, as in KeyTable. Throws kNotHeld for states that are numbered instead of named, unless only
// the weights are wanted; kUnknownPartition if that number of ranks cannot have cut a parameter. `members`:
// the pattern by whose groups the layers are named; they get the names that they have without groups. Null:
// they keep their names.
TranslatedRun state_dict_pieces(std::unique_ptr<Store> store, DcpDialect dialect, const ModelMap* map,
                                const RunSetup& setup, KeyTable::Cells cells, bool weights_only,
                                bool keep_groups = false, const LayerPattern* members = nullptr);

}  // namespace mckpt::impl
