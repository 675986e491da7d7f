// Sizes of a vision tower that config.json does not mention, because the code of the model has them as
// constants: taken from the shapes of its tensors.
//
//   embedder.weight [1280, 768]   -->   the width of the tower is 1280, and of a head 1280 / heads
#pragma once

namespace mckpt::impl {

struct Family;
struct ModelConfig;
class SourceTable;

// Nothing is done for a config that states them, and for tensors that are not there or whose headers are
// not known. Throws kBadConfig for a tower of another width than the code's whose number of heads the
// config does not say.
void learn_sizes(const Family& family, const SourceTable& sources, ModelConfig& model);

}  // namespace mckpt::impl
