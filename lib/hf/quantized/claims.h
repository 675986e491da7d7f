// Compares a config's claims about quantised weights with the codes and scales of the files.
//
//   config.json                                         the files
//   "fmt": "e5m2"                                       w.weight F8_E4M3                        contradiction
//   "strategy": "tensor"                                w.weight_scale [3072], one a row        contradiction
//   "symmetric": true                                   w.weight_zero_point                     contradiction
//
// A setting that the config does not have is not a claim. If there are several groups, one has to fit each
// tensor: which modules a group is for is not read.
#pragma once

#include <string>

#include "hf/quantized/config.h"

namespace mckpt::impl {

struct QuantLayout;

// The claim of the config where the tensor's layout is another ("strategy tensor"), or "" if nothing
// contradicts it.
std::string contradicted_claim(const QuantConfig& config, const QuantLayout& layout);
// Whether the layout contradicts no claim of the group, so that the tensor may be in it.
bool may_be_in(const QuantConfig::Weights& group, const QuantLayout& layout);

}  // namespace mckpt::impl
