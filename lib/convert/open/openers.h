// The parts of open(): the openers of the two kinds of model. Only lib/convert/open includes this; everybody
// else asks open() and its four forms (convert/open/open.h), so that a path is one thing for all commands.
#pragma once

#include <memory>

#include "convert/open/checkpoint.h"
#include "convert/open/own_model.h"

namespace mckpt::impl {

// Throws what open_hf_model() throws, kUnknownAssets, what is wrong with the checkpoint, and what KeyTable
// and StoredChunks throw.
CheckpointModel open_checkpoint(std::unique_ptr<Store> store, const CheckpointOptions& options);

// Takes the open source. Throws kUnknownFormat for names of Megatron, kUnknownAssets if `complete` and
// nothing says which model it is; DamagedCheckpoint; kShardAlone for the file of one of several ranks;
// kUnaccounted for tensors that are missing, or that the model ties although they differ; kSourceShape for
// shapes that the model's folder does not have.
OwnModel open_own_model(std::unique_ptr<Store> source, const OwnModelOptions& options);

// The tensors of the result as a store, in their order and under their names. Takes the model's store, which
// the result keeps.
std::unique_ptr<Store> take_written(OwnModel& model);

}  // namespace mckpt::impl
