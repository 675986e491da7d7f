// Declares the flag.
#include "tools/options/model_dict_flag.h"

#include "core/base/error.h"
#include "tools/options/command_line.h"

namespace mckpt::impl {

void ModelDictFlag::declare(CommandLine& line) {
  line.option("--model-dict NAME", dict_,
              "of a save with several dicts that may be the model: the one that is, such as actor or "
              "state.policy");
}

std::string ModelDictFlag::name() const {
  if (dict_ && dict_->empty())
    throw Error(Code::kUsage, "--model-dict is the name of a dict, and not empty")
        .expected("a name such as actor or state.policy");
  return dict_.value_or("");
}

}  // namespace mckpt::impl
