// Declares the flag.
#include "tools/options/model_dict_flag.h"

#include "tools/options/command_line.h"

namespace mckpt::impl {

void ModelDictFlag::declare(CommandLine& line) {
  line.option("--model-dict NAME", dict_,
              "of a save with several dicts that may be the model: the one that is, such as actor or "
              "state.policy");
}

}  // namespace mckpt::impl
