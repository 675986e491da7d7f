// The proofs of conversions with a model on both sides: tensors of a Hugging Face folder on one, keys of
// Megatron on the other. Which tensors are left out, and as what, follows from the family's table alone and
// not from the planner.
#pragma once

namespace mckpt::impl {

class ChunkList;
class DcpLayout;
class KeyTable;
class ModelMap;
class Notes;
class Store;
struct Grid;
struct HfLayout;
struct ModelParameter;
struct ProofInput;
struct ProofSide;
struct RunSetup;

// pre, for all functions: the arguments outlive the result.

// The proof of an import_job() into all chunks of `to`, whose tensors belong to the layout, or to `result`.
// The store has the tensors of keys.map(). Parameters that no tensor is read for are constants of
// their rules.
ProofInput import_proof(const Store& source, const KeyTable& keys, const ChunkList& to,
                        const DcpLayout& layout);
ProofInput import_proof(const Store& source, const KeyTable& keys, const ChunkList& to, ProofSide result);
// The proof of an export_job() of all chunks of the keys.
ProofInput export_proof(const KeyTable& keys, const HfLayout& hf);
// Whether the rule of the parameter gives all of its values.
bool is_constant(const ModelParameter& p);
// Says which parameters no tensor of the model has, where there are any.
void note_constants(const KeyTable& keys, Notes& notes);
// Says which sizes of the model the grid pads or leaves idle, and in the details what a training run has to
// be told.
void note_sizes(const ModelMap& map, const RunSetup& run, const Grid& grid, Notes& notes, Notes& details);
// The proof of a gather_job() between two sharded checkpoints of one model.
ProofInput gather_proof(const KeyTable& from, const DcpLayout& layout);

}  // namespace mckpt::impl
