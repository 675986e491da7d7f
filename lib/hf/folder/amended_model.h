// Puts into the numbers of a base's config what its adapter changes: rows of the vocabulary, a head of its
// own.
#pragma once

#include "hf/adapter/amended_config.h"
#include "hf/config/json.h"

namespace mckpt::impl {

inline void amend(HfConfig& config, const AmendedConfig& how) {
  if (how.vocab) config.model.vocab = *how.vocab;
  if (how.untied) config.model.tied = false;
}

}  // namespace mckpt::impl
