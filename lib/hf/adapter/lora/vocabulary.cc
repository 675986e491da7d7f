// By the names that models of transformers give these modules.
#include "hf/adapter/lora/vocabulary.h"

#include <algorithm>

#include "core/base/text.h"
#include "hf/adapter/lora/lora_config.h"
#include "hf/adapter/lora/parameters.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kEmbeddings[] = {"embed_tokens",   "wte",    "word_embeddings", "embed_in",
                                            "tok_embeddings", "shared", "embeddings"};
constexpr std::string_view kHeads[] = {"lm_head", "embed_out", "output", "score", "proj_out"};
// Heads that are ever tied to an embedding.
constexpr std::string_view kTiedHeads[] = {"lm_head", "embed_out", "output"};
constexpr std::string_view kWeight = ".weight";

template <std::size_t N>
bool has(const std::string_view (&table)[N], std::string_view text) {
  return std::ranges::find(table, text) != std::end(table);
}

std::string_view last_part(std::string_view module) { return module.substr(module.rfind('.') + 1); }

// The last part of the module's name; "" for what is not a weight.
std::string_view module_of(std::string_view name) {
  if (!name.ends_with(kWeight)) return "";
  return last_part(name.substr(0, name.size() - kWeight.size()));
}

}  // namespace

bool is_embedding_weight(std::string_view name) { return has(kEmbeddings, module_of(name)); }
bool is_head_weight(std::string_view name) { return has(kTiedHeads, module_of(name)); }

Vocabulary::Vocabulary(const BaseTensors& base, const BaseFacts& facts, const LoraConfig& config) {
  unties_ = !config.keeps_tie && std::ranges::any_of(config.rules.saved, [](std::string_view name) {
    return has(kEmbeddings, last_part(name)) || has(kTiedHeads, last_part(name));
  });
  if (facts.tied == false) return;
  i64 embeddings = 0;
  for (i64 t = 0; t < base.store().tensor_count(); t++) {
    const std::string_view name = base.store().name(t);
    if (has(kHeads, module_of(name))) {
      tied_ = -1;
      return;
    }
    if (is_embedding_weight(name) && base.store().dims(t).size() == 2) embeddings++, tied_ = t;
  }
  if (embeddings != 1) tied_ = -1;
}

}  // namespace mckpt::impl
