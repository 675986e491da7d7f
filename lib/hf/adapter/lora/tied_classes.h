// Which names in memory the classes of transformers have for one parameter, from a table that is made of
// transformers' own.
//
//   Qwen3ForCausalLM   model.embed_tokens.weight = lm_head.weight
//   BertForMaskedLM    bert.embeddings.word_embeddings.weight = cls.predictions.decoder.weight
//                      cls.predictions.bias = cls.predictions.decoder.bias
//   Qwen3Model         none
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace mckpt::impl {

struct TiedClass {
  std::vector<std::vector<std::string_view>> parameters;  // the names of each, in the order of the modules
  bool by_default;                                        // a config without tie_word_embeddings ties them
  bool fixed;  // a folder that does not tie them is another model of the class, or none
};

// Nothing for a class that is not known.
std::optional<TiedClass> tied_class(std::string_view architecture);

}  // namespace mckpt::impl
