// A checkpoint with its names in another spelling (core/hybrid/spellings.h): in the usual one, to be compared
// with a checkpoint that has it, or in the one that a result is to have.
//
//   model.module.decoder.layers.0.mixer.conv1d.weight  -->  model.module.decoder.layers.0.mixer.conv1d_weight
#pragma once

#include <memory>

namespace mckpt::impl {

class ModelMap;
class PieceStore;
class Store;
struct RunFacts;
struct RunSetup;
struct Spelling;

// Takes the store into the result, which is the store itself where no name changes. pre: it has the names of
// fsdp_dtensor, and the spelling of the setup. The map may be discarded afterwards. `facts`: of its run,
// which get the names too; null: the store has them as objects.
std::unique_ptr<Store> with_spelling(std::unique_ptr<Store> store, const ModelMap& map, const RunSetup& setup,
                                     const Spelling& wanted, RunFacts* facts = nullptr);

}  // namespace mckpt::impl
