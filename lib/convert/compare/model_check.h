// The check "model" of `verify`: whether a Hugging Face folder has the tensors that its config.json promises,
// with their shapes. Every other check looks at the files alone and does not notice a weight that is in none.
//
//   pass  model   45 tensors      tensors against config.json
//   FAIL  model   45 tensors      model.norm.weight of the config is in no file
//   -     model   not compared with config.json: there is no table for the model type
#pragma once

namespace mckpt::impl {

class Store;
struct VerifyReport;

// Adds the check if the store is a folder of safetensors files with a config.json and nothing is wrong with
// the files themselves.
void check_model(const Store& store, VerifyReport& report);

}  // namespace mckpt::impl
