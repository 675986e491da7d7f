// The proofs of conversions with a model on both sides: tensors of a Hugging Face folder on one, keys of
// Megatron on the other. Which tensors are left out, and as what, follows from the family's table alone and
// not from the planner.
#pragma once

namespace mckpt::impl {

class DcpLayout;
class KeyTable;
class ModelMap;
class Store;
struct HfLayout;
struct ProofInput;
struct ProofSide;

// pre, for all functions: the arguments outlive the result.

// Of an import_job() into all chunks of the layout. The tensors of the map are those of the store.
ProofInput import_proof(const Store& source, const ModelMap& map, const DcpLayout& layout);
ProofInput import_proof(const Store& source, const ModelMap& map, ProofSide result);
// Of an export_job() of all chunks of the keys.
ProofInput export_proof(const KeyTable& keys, const HfLayout& hf);
// Of a gather_job() between two sharded checkpoints of one model.
ProofInput gather_proof(const KeyTable& from, const DcpLayout& layout);

}  // namespace mckpt::impl
