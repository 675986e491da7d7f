// Entries of config.json that no model computes with, and words that transformers does not know:
//
//   {"hidden_act": "SILU"}         refused: no activation has that name
//   {"rope_theta": 0}              refused: the base must be positive
//   {"rms_norm_eps": null}         read as not given, with a doubt: transformers 5 refuses it
#pragma once

#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class JsonValue;

// Throws kBadConfig for the first entry out of its limits. Returns a sentence for each entry that is read
// though transformers 5 refuses it. `config`: an object. `experts`: of a layer; 0: no layer has any.
// `own_code`: code beside the weights, or a map, may know more words than transformers.
std::vector<std::string> check_entry_limits(const JsonValue& config, i64 experts, bool own_code);

}  // namespace mckpt::impl
