// Loading: values from files into the stored weights of every rank, each rank what it has; then the compute
// weights are made of them, once.
#pragma once

#include "core/base/int.h"

namespace mckpt::impl {

class ChunkList;
class KeyTable;
class LiveModel;
class Store;
struct BlockLoadOptions;
struct CopyCounts;

// The keys of the model's checkpoint on its grid, with the types of the source: what loading passes nothing
// through, so that main weights are those of the files.
KeyTable live_keys(const LiveModel& model);

// Each is collective, and gives the model memory where it has none. Shapes and sizes of the whole model are
// exchanged in one collective, before anything is read: ranks that do not agree throw kRanksFailed.

// From a Hugging Face folder; the map's tensors are those of the store. `keys`: live_keys().
CopyCounts load_from_model(LiveModel& model, const KeyTable& keys, const Store& source,
                           const BlockLoadOptions& options);
// From a sharded checkpoint of any grid. `from`: its chunks.
CopyCounts load_from_checkpoint(LiveModel& model, const KeyTable& keys, const Store& checkpoint,
                                const KeyTable& stored_keys, const ChunkList& stored,
                                const BlockLoadOptions& options);

}  // namespace mckpt::impl
