// Tables of ends of names; what is in front of an end is the front of the model that has the tensor.
#include "hf/folder/tied_names.h"

#include <algorithm>
#include <optional>
#include <span>

#include "core/base/text.h"
#include "core/items/shape.h"
#include "hf/config/token_modules.h"
#include "io/store/finding.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

using Ends = std::span<const std::string_view>;

constexpr const char* kWayOn =
    "if the model uses the tensor, set tie_word_embeddings to false in config.json; otherwise save the model without it";

// Output layers that are a part of a larger head, or have a name of their own in a few families.
constexpr std::string_view kOtherHeads[] = {"cls.predictions.decoder.weight",
                                            "predictions.decoder.weight",
                                            "lm_head.decoder.weight",
                                            "lm_head.out_proj.weight",
                                            "head.decoder.weight",
                                            "mlm_score.decoder.weight",
                                            "decoder.weight",
                                            "output_projection.weight",
                                            "generator_lm_head.weight",
                                            "vocab_projector.weight",
                                            "pred_layer.proj.weight",
                                            "lm_loss.weight",
                                            "text_decoder_postnet.lm_head.weight"};
// The parts of a model that have an embedding each.
constexpr std::string_view kSides[] = {"encoder",      "decoder",    "text_encoder",
                                       "text_decoder", "text_model", "language_model"};
constexpr std::pair<std::string_view, std::string_view> kPairs[] = {
    {"encoder.embed_patches.proj.weight", "patch_embed.proj.weight"},
    {"encoder.embed_patches.proj.bias", "patch_embed.proj.bias"},
    {"encoder.relative_bias.biases.0.relative_attention_bias.weight",
     "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"},
    {"decoder.relative_bias.biases.0.relative_attention_bias.weight",
     "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"},
    {"prompt_encoder.shared_embedding.positional_embedding", "shared_image_embedding.positional_embedding"},
};

// The text in front of that end: "" or up to a dot; nothing if the name does not have the end.
std::optional<std::string_view> front_of(std::string_view name, std::string_view end) {
  if (!name.ends_with(end)) return std::nullopt;
  name.remove_suffix(end.size());
  if (!name.empty() && !name.ends_with('.')) return std::nullopt;
  return name;
}

// The text in front of the longest of these ends that the name has.
std::optional<std::string_view> front_of(std::string_view name, Ends ends) {
  std::optional<std::string_view> out;
  for (std::string_view end : ends)
    if (std::optional<std::string_view> front = front_of(name, end))
      if (!out || front->size() < out->size()) out = front;
  return out;
}

// The same for the weights of these modules.
std::optional<std::string_view> front_of_weight(std::string_view name, Ends modules) {
  constexpr std::string_view kWeight = ".weight";
  if (!name.ends_with(kWeight)) return std::nullopt;
  return front_of(name.substr(0, name.size() - kWeight.size()), modules);
}

std::optional<std::string_view> front_of_head(std::string_view name) {
  const std::optional<std::string_view> plain = front_of_weight(name, kHeadModules),
                                        other = front_of(name, kOtherHeads);
  return !plain || (other && other->size() < plain->size()) ? other : plain;
}

bool is_head_of(std::string_view head, std::string_view embedding) {
  const std::optional<std::string_view> front = front_of_head(head);
  return front && is_embedding(embedding) && embedding.starts_with(*front);
}

// Whether the modules are sides: "", "encoder.", "encoder.text_model.".
bool is_of_side(std::string_view front) {
  while (!front.empty()) {
    const std::size_t dot = front.find('.');
    if (std::ranges::find(kSides, front.substr(0, dot)) == std::end(kSides)) return false;
    front.remove_prefix(dot + 1);
  }
  return true;
}

bool are_of_two_sides(std::string_view one, std::string_view other) {
  std::optional<std::string_view> a = front_of_weight(one, kEmbeddingModules),
                                  b = front_of_weight(other, kEmbeddingModules);
  if (!a || !b) return false;
  const std::size_t alike = std::ranges::mismatch(*a, *b).in1 - a->begin();
  const std::size_t common = a->substr(0, alike).rfind('.') + 1;  // 0 if there is no dot
  return is_of_side(a->substr(common)) && is_of_side(b->substr(common));
}

// "cls.predictions" for the bias of this head; "" for any other tensor.
std::string_view head_of_bias(std::string_view name) {
  constexpr std::string_view kBias = ".bias", kDecoder = ".decoder";
  if (!name.ends_with(kBias)) return "";
  name.remove_suffix(kBias.size());
  if (name.ends_with(kDecoder)) name.remove_suffix(kDecoder.size());
  const std::string_view last = name.substr(name.rfind('.') + 1);
  return last == "predictions" || last == "mlm_score" || last.ends_with("_head") ? name : "";
}

bool are_a_pair(std::string_view one, std::string_view other) {
  return std::ranges::any_of(kPairs, [&](const auto& pair) {
    const std::optional<std::string_view> a = front_of(one, pair.first);
    return a && a == front_of(other, pair.second);
  });
}

}  // namespace

bool is_head(std::string_view name) { return front_of_weight(name, kHeadModules).has_value(); }
bool is_shared_embedding(std::string_view name) { return front_of(name, "shared.weight").has_value(); }
bool is_embedding(std::string_view name) { return front_of_weight(name, kEmbeddingModules).has_value(); }

Tie tie_of_names(std::string_view one, std::string_view other) {
  if (is_head_of(one, other) || is_head_of(other, one)) return Tie::kHead;
  const std::string_view head = head_of_bias(one);
  const bool biases = !head.empty() && head == head_of_bias(other);
  return biases || are_of_two_sides(one, other) || are_a_pair(one, other) || are_a_pair(other, one)
             ? Tie::kModule
             : Tie::kNone;
}

bool has_name_of_tie(std::string_view name) {
  return is_embedding(name) || front_of_head(name) || !head_of_bias(name).empty() ||
         std::ranges::any_of(kPairs, [&](const auto& pair) {
           return front_of(name, pair.first) || front_of(name, pair.second);
         });
}

std::string unlike_tie(std::string_view copy, std::string_view of) {
  return cat(escaped(copy), " differs from ", escaped(of));
}

Finding unlike_tie_finding(std::string_view unlike, const std::string& folder) {
  return {
      .code = Code::kUnaccounted,
      .message = cat(unlike, ", and config.json", folder.empty() ? "" : cat(" in ", escaped(folder, 4096)),
                     " ties them: transformers 5 loads both as they are, transformers 4 takes the embedding "
                     "for both, and conversions that need one answer refuse the model"),
      .help = kWayOn,
      .warning = true};
}

Error unlike_ties(std::span<const std::string> unlike, const std::string& folder) {
  Error e(Code::kUnaccounted,
          "a tensor that should be a copy of another one has values of its own, which would be lost");
  e.each_note(unlike).help(kWayOn);
  return folder.empty() ? e : e.note(cat("config.json in ", escaped(folder, 4096), " ties them"));
}

bool share_storage(const Store& store, i64 one, i64 other) {
  const i64 chunks = store.chunk_count(one);
  if (store.dtype(one) != store.dtype(other) || !std::ranges::equal(store.dims(one), store.dims(other)) ||
      store.shape(one).items() == 0 || chunks != store.chunk_count(other))
    return false;
  for (i64 c = 0; c < chunks; c++) {
    const Chunk a = store.chunk(one, c), b = store.chunk(other, c);
    if (a.file != b.file || a.record_offset < 0 || a.record_offset != b.record_offset ||
        !std::ranges::equal(a.offsets, b.offsets) || !std::ranges::equal(a.sizes, b.sizes))
      return false;
    const ChunkData at = store.resolve(one, c), there = store.resolve(other, c);
    if (at.file != there.file || at.offset != there.offset || at.strides != there.strides) return false;
  }
  return true;
}

}  // namespace mckpt::impl
