// A checkpoint whose tensors have the model's own names, seen with the names of its Hugging Face folder:
//
//   app.model.model.embed_tokens.weight           model.embed_tokens.weight
//   app.model.lm_head.weight                      lm_head.weight
//   app.optim.state.lm_head.weight.exp_avg        beside
//   '- section -'
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace mckpt::impl {

class Store;
struct HfConfig;

struct OwnNamesOptions {
  const HfConfig* config = nullptr;  // of the model, if it is known (hf/config_json.h)
};

struct OwnNames {
  std::unique_ptr<Store>
      store;  // only the tensors of the model, under the names that its Hugging Face folder has
  std::vector<std::string> beside;  // names of the source's other tensors: optimizer states, counters
  std::string section;              // what was in front of every model tensor: "app.model."; "" for none
  std::string convention;           // whose names they were: "transformers", "torchtitan llama3" ...
};

// Takes the open source.
OwnNames own_names(std::unique_ptr<Store> store, const OwnNamesOptions& options);

}  // namespace mckpt::impl
