// A checkpoint whose parameters have other names (core/hybrid/spellings.h) under their usual ones, to be
// compared with a checkpoint that has these:
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

// Takes the store into the result. pre: it has the names of fsdp_dtensor, and the spelling of the setup. The
// map may be discarded afterwards. `facts`: of its run, which get the names too; null: the store has them as
// objects.
std::unique_ptr<PieceStore> with_usual_names(std::unique_ptr<Store> store, const ModelMap& map,
                                             const RunSetup& setup, RunFacts* facts = nullptr);

}  // namespace mckpt::impl
