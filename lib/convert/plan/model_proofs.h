// What is to be proved where a model is on both sides: tensors of a Hugging Face folder on one, keys of Megatron on
// the other. Tensors that no parameter reads are named as dropped or as copies by the family's table alone.
#pragma once

#include "convert/jobs/proof.h"

namespace mckpt::impl {

class ModelMap;
struct HfLayout;

// All of these outlive the input.

// Of an import_job() into all chunks of the layout. The tensors of the map are those of the store.
ProofInput import_proof(const Store& source, const ModelMap& map, const DcpLayout& layout);
// Of an export_job() of all chunks of the keys.
ProofInput export_proof(const KeyTable& keys, const HfLayout& hf);
// Of a gather_job() between two sharded checkpoints of one model.
ProofInput gather_proof(const KeyTable& from, const DcpLayout& layout);

}  // namespace mckpt::impl
