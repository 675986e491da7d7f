// The last part of the names of modules that read or predict tokens, as most models have it.
#pragma once

#include <string_view>

namespace mckpt::impl {

inline constexpr std::string_view kEmbeddingModules[] = {"embed_tokens",   "wte",          "word_embeddings",
                                                         "word_embedding", "shared",       "embed_in",
                                                         "tok_embeddings", "tokens_embed", "embeddings"};
inline constexpr std::string_view kHeadModules[] = {"lm_head", "proj_out", "embed_out", "output"};

}  // namespace mckpt::impl
