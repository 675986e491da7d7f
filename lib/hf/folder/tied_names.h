// Which tensors of one model may be the same parameter, by their names. Equal values alone prove nothing: two
// identity matrices, a table of sines on either side and the start of a reference model are equal, and are
// parameters of their own. The names are from the ties that the models of transformers declare:
//
//   output layer and embedding             lm_head.weight                  model.embed_tokens.weight
//                                          cls.predictions.decoder.weight  bert.embeddings.word_embeddings.weight
//   embeddings of an encoder and a decoder encoder.embed_tokens.weight     shared.weight
//   the bias of a head and of its layer    cls.predictions.decoder.bias    cls.predictions.bias
//   a few of single families               encoder.embed_patches.proj.bias patch_embed.proj.bias
//
// Both names must have the same text in front: ref.lm_head.weight is not tied to an embedding of another
// model. lm_head.weight has nothing in front, and so it may be tied to any embedding; whoever leaves tensors
// out has to see which one it is (convert/open/own_model.cc).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/base/int.h"

namespace mckpt::impl {

class Store;
struct Finding;

// A layer that predicts tokens, where most models have it: lm_head and the like.
bool is_head(std::string_view name);
// A layer that reads tokens.
bool is_embedding(std::string_view name);
// The embedding of T5, BART and others, which the embeddings of encoder and decoder are tied to.
bool is_shared_embedding(std::string_view name);

enum class Tie : u8 {
  kNone,
  kHead,    // an output layer and an embedding, which tie_word_embeddings of config.json ties
  kModule,  // tied in every model that has both
};
// In either order.
Tie tie_of_names(std::string_view one, std::string_view other);
// False for names that tie_of_names() ties to no name.
bool has_name_of_tie(std::string_view name);

// "lm_head.weight differs from model.embed_tokens.weight"
std::string unlike_tie(std::string_view copy, std::string_view of);
// A warning that the files have both tensors of a tie, which differ. `unlike`: a line of unlike_tie().
// `folder`: as in unlike_ties().
Finding unlike_tie_finding(std::string_view unlike, const std::string& folder = "");
// kUnaccounted: tensors that a model ties have values of their own. `unlike`: their lines. `folder`: of the
// config.json that ties them, where it is not the checkpoint's; "".
Error unlike_ties(std::span<const std::string> unlike, const std::string& folder = "");

// Whether two tensors are the same bytes of the same files, as torch.save() stores a parameter that a model
// has under two names. False for tensors without items. Throws what Store::resolve() throws.
bool share_storage(const Store& store, i64 one, i64 other);

}  // namespace mckpt::impl
