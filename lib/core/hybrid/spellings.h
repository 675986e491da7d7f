// Names that different versions and specs of Megatron give to one and the same tensor. The usual name is the
// one that the tables of models have: Megatron 0.19 with TransformerEngine's modules.
//
//   layer  usual                                     other                        where the other one occurs
//   M      mixer.conv1d_weight                       mixer.conv1d.weight          older versions; torch_dist
//   M      mixer.in_proj.layer_norm_weight           norm.weight                  models of Megatron's own
//   *      self_attention.linear_qkv.layer_norm_...  input_layernorm.weight       modules, as for ModelOpt:
//   G      self_attention.in_proj.layer_norm_weight  input_layernorm.weight       a norm is not fused with
//   -      mlp.linear_fc1.layer_norm_weight          pre_mlp_layernorm.weight     the linear layer behind it
//          decoder.final_norm.weight                 decoder.final_layernorm...   early models with groups
//
// A parameter has one of its names, whatever else the model has. This is the only table of such pairs.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

enum class LayerKind : u8;

// The final norm of a hybrid model, and of a GPT model or a hybrid model with groups.
inline constexpr std::string_view kHybridFinalNorm = "decoder.final_norm.",
                                  kGptFinalNorm = "decoder.final_layernorm.";

// Why a parameter has another name.
enum class SpellingKind : u8 { kSubmoduleConv, kUnfusedNorm, kFinalNorm };

// A row of the table. `usual` and `other` end before "weight" or "bias".
struct OtherName {
  SpellingKind why;
  std::string_view symbols;  // of the kinds of layers that have the parameter; "": it is not of a layer
  std::string_view usual, other;
  // The module of the other name is registered directly before the parameters of its layer that begin with
  // `neighbour`, or directly behind them.
  std::string_view neighbour = {};
  bool behind = false;
};
std::span<const OtherName> other_names();

// Which names a model spells the other way. A value; the default is the usual spelling.
struct Spelling {
  u32 rows = 0;          // bit i: row i of other_names()
  bool old_mtp = false;  // the layers of MTP (core/hybrid/mtp_names.h)

  bool usual() const { return rows == 0 && !old_mtp; }
  bool has(int row) const { return (rows >> row & 1) != 0; }
  void add(int row) { rows |= u32{1} << row; }
  friend bool operator==(const Spelling&, const Spelling&) = default;
};

// The word for the old names of MTP's layers, which only files of ranks are written with.
inline constexpr std::string_view kOldMtpWord = "mtp-transformer-layer";
// The spelling of the words "submodule-conv", "unfused-norms" and kOldMtpWord. Throws kUsage for any other.
// `rank_files`: the error names kOldMtpWord, too.
Spelling spelling_of(std::span<const std::string> words, bool rank_files = false);
// "submodule-conv, unfused-norms"; "" for the usual spelling. A final norm has a word of its own here.
std::string to_string(const Spelling& spelling);

// The other name of a parameter, whatever precedes the usual one and follows it: layers, ".x", ".exp_avg".
// Nothing for a parameter with one name only.
struct Respelt {
  int row = 0;
  std::string name;
};
std::optional<Respelt> other_name(std::string_view name);

// The usual name behind the layer of a parameter that has its other name for this reason,
// "mixer.in_proj.layer_norm_weight" for "norm.weight". Nothing if no parameter of such a layer has that name.
std::optional<std::string> usual_rest(SpellingKind why, LayerKind kind, std::string_view rest);

// A name with the usual name of a convolution in place of its other one, whatever is around it.
std::string with_usual_conv(std::string_view name);

// Where the name of the last layer in `name` ends: "decoder.layers.3.mlp.x" and "decoder.layers.mlp.x", in
// which all layers are stacked, continue with "mlp.x" there. 0: there is no layer.
std::size_t end_of_layer(std::string_view name);

// Finds the spelling of a checkpoint by its names alone: use add() for each name of its model section. An
// `input_layernorm` is evidence only beside a linear layer that could have it fused: layers of latent
// attention always have one.
class SpellingEvidence {
 public:
  void add(std::string_view name);
  Spelling found() const;

 private:
  // The rows of which a layer has the other name, and those whose linear layer or mixer it has.
  struct Seen {
    Spelling others, owners;
  };
  std::map<std::string, Seen, std::less<>> seen_;  // by name up to the end of the layer
};

}  // namespace mckpt::impl
