// The check "model" of `verify`: whether a Hugging Face folder has the tensors that its config.json promises,
// with their shapes. Every other check looks at the files alone and does not notice a weight that is in none.
//
//   pass  model    45 tensors      config.json has them all
//   FAIL  model    44 tensors      tensors against config.json
//         problem[MC2005]: the tensors and the model do not match: 1 missing: model.norm.weight
//   -     model    not compared with config.json: the model type is unknown
#pragma once

namespace mckpt::impl {

class Store;
struct VerifyReport;

// Adds the check if the store is a folder of safetensors files with a config.json and nothing is wrong with
// the files themselves.
void check_model(const Store& store, VerifyReport& report);

}  // namespace mckpt::impl
