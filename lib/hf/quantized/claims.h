// What a config says of quantised weights, against the codes and scales of the files.
//
//   config.json                                         the files
//   "fmt": "e5m2"                                       w.weight F8_E4M3                        contradiction
//   "strategy": "tensor"                                w.weight_scale [3072], one a row        contradiction
//   "symmetric": true                                   w.weight_zero_point                     contradiction
//
// A setting that the config does not have is no claim. Of several groups one has to fit each tensor: which
// modules a group is for is not read.
#pragma once

#include <string>

namespace mckpt::impl {

struct QuantConfig;
struct QuantLayout;

// What the config says where the tensor's layout is another ("strategy tensor"), or "" if nothing contradicts
// it.
std::string contradicted_claim(const QuantConfig& config, const QuantLayout& layout);

}  // namespace mckpt::impl
