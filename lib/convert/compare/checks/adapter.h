// Adapters without their base, whose config is half of what they are.
//
// The check "adapter" of `verify`: whether the tensors of an adapter are those that its config speaks of.
// With its base it is a model, and opening it has proved more (hf/adapter/lora/pairing.h).
//
//   pass  adapter  16 tensors      fit adapter_config.json
//   FAIL  adapter  15 tensors
//         problem[MC2005]: model.layers.0.self_attn.q_proj: one of the two factors of a module is missing
#pragma once

#include <functional>
#include <string>

#include "core/base/int.h"
#include "core/base/name_hash.h"

namespace mckpt::impl {

class Store;
struct VerifyReport;

// Adds the check if the store is the folder of an adapter. Adds the config to `judged`, the files that were
// read.
void check_adapter(const Store& store, NameSet<std::string>& judged, VerifyReport& report);

// The same of a merged model: what is wrong with the values of its adapter. Findings about tensors that the
// adapter changes name no file: they are in none. `step`: as for verify_store().
void check_merged_adapter(const Store& store, int threads, const std::function<void(i64 bytes)>& step,
                          VerifyReport& report);

// Adds the check "adapter" if the base of a side is not the one that its adapter was trained on: a warning.
void warn_of_bases(const Store& tested, const Store& source, VerifyReport& report);

// Adds the check "assets" if both are folders of adapters: their configs must say the same. Entries on which
// the merged model does not depend are warnings. `every`: every difference is listed in the report too.
// Returns whether they make the same of a base. Other files of these folders are named.
bool compare_adapters(const Store& tested, const Store& source, bool every, VerifyReport& report);

}  // namespace mckpt::impl
