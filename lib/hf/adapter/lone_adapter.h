// An adapter without its base: whether its tensors are those that its config speaks of.
#pragma once

#include <string>
#include <vector>

#include "core/base/error.h"

namespace mckpt::impl {

class Store;

struct LoneAdapter {
  std::vector<Error> problems{};  // one for each kind, with the first module and the number of others
  std::string not_checked{};      // why the tensors were not compared with the config; "": they were
};

// `config_text`: adapter_config.json. Throws nothing of the adapter.
LoneAdapter check_lone_adapter(const Store& adapter, const std::string& config_text);

}  // namespace mckpt::impl
