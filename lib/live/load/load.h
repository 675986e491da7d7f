// Loading: values from files into the stored weights of every rank; then the compute weights are made from
// them, once.
//
//   files  --job (import or gather)-->  moves  --block loader-->  stored weights  --refresh-->  compute weights
//
// Each byte of the files is read once by each host, whatever the number of its ranks.
#pragma once

#include "core/base/int.h"

namespace mckpt::impl {

class ChunkList;
class KeyTable;
class LiveModel;
class Store;
struct BlockLoadOptions;
struct CopyCounts;

// The keys of the model's checkpoint on its grid, in the types of the source: loading passes values through
// no other type, so that main weights equal the files'. The model outlives the table.
KeyTable live_keys(const LiveModel& model);

// Both functions are collective over all ranks of the job, and allocate the model's memory if it has none.
// Shapes and sizes of the whole model are exchanged in one collective before anything is read: ranks that do
// not agree throw kRanksFailed. After an error the weights are not complete, and reading them throws
// kReadFailed. `keys`: live_keys().

// Loads from a Hugging Face folder. pre: the store has the tensors of the model's map.
CopyCounts load_from_model(LiveModel& model, const KeyTable& keys, const Store& source,
                           const BlockLoadOptions& options);
// From a sharded checkpoint of any grid: `stored` are its chunks under the keys of `stored_keys`.
CopyCounts load_from_checkpoint(LiveModel& model, const KeyTable& keys, const Store& checkpoint,
                                const KeyTable& stored_keys, const ChunkList& stored,
                                const BlockLoadOptions& options);

}  // namespace mckpt::impl
