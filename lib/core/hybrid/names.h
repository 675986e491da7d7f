// The names of a decoder's layers in a checkpoint. Models of one layer pattern have several forms of names. A
// name in one form is translated to another by finding its layer in the pattern, and then the name of that
// layer in the other form:
//
//   pattern [*-]M       flat               member                     logical
//   MLP, layer 1        layers.1.mlp.*     layers.0.layers.1.mlp.*    layers.0.mlp.*
//   mixer, layer 2      layers.2.mixer.*   layers.1.mixer.*           layers.1.mixer.*
//   final norm          final_norm         final_norm                 final_layernorm
//
//   pattern *-*-        gpt: attention i and MLP i are layer i        stacked
//   MLP, layer 3        layers.1.mlp.*                                layers.mlp.*, first dimension: item 1
//
// flat: a hybrid model without groups. member: with groups, as in memory and in fsdp_dtensor. logical: with
// groups, as in torch_dist. gpt and stacked: the two forms of a GPT model in torch_dist.
#pragma once

#include <optional>
#include <vector>

#include "core/base/error_code.h"
#include "core/base/int.h"
#include "core/hybrid/kind.h"
#include "core/hybrid/mtp_names.h"

namespace mckpt::impl {

struct LayerPattern;

// The forms of names; the table at the top of this file has an example of each.
enum class LayerForm : u8 { kFlat, kMember, kLogical, kGpt, kStacked };
std::string_view form_name(LayerForm form);  // "flat"
inline bool is_gpt(LayerForm form) { return form == LayerForm::kGpt || form == LayerForm::kStacked; }

// Why a name does not belong to a model.
struct NameFault {
  Code code;
  std::string message;
};

// A name, taken apart.
struct LayerName {
  enum class Kind : u8 {
    kOther,  // not of a layer: the same in every form
    kFinalNorm,
    kLayer,  // of a layer of the main part or of an MTP depth
    kStack,  // of all layers in one tensor: LayerNames::of_stack() gives the name of each
  };
  Kind kind = Kind::kOther;
  i64 depth = -1;         // of MTP; -1: the main part
  i64 layer = -1;         // physical
  std::string_view rest;  // the name after the layer or the norm
};

// The names of one pattern in one form. Constant after the constructor.
class LayerNames {
 public:
  // The pattern must outlive this object. `mtp_block`: the word for the layer of an MTP depth in names of a
  // GPT model that are written; both words are read. Throws kNotHeld if no GPT model has the pattern.
  LayerNames(const LayerPattern& pattern, LayerForm form, std::string_view mtp_block = kOldMtpModule);

  const LayerPattern& pattern() const { return pattern_; }
  LayerForm form() const { return form_; }
  // The number of layers, counted as the form does.
  i64 layers() const;
  const LayerKindInfo& kind(i64 layer) const { return *find_layer_kind(symbols_[layer]); }
  // False for layers that the form does not have: a GPT model has no mixers.
  bool has(i64 layer) const { return number_of_[layer] >= 0; }
  // The layer's number in the form.
  i64 number(i64 layer) const { return number_of_[layer]; }

  // `name` is the name of a parameter or module, without the prefixes of sections.
  LayerName find(std::string_view name, std::optional<NameFault>& fault) const;
  // Layer `number` of a stack.
  LayerName of_stack(std::string_view rest, i64 number, std::optional<NameFault>& fault) const;
  // The name, in this form, of a result of find() of another form. pre: kLayer of the main part that it
  // has(), or kFinalNorm, or kLayer of MTP if the pattern has an MTP part.
  std::string text(const LayerName& name) const;

 private:
  LayerName find_in_main(std::string_view numbered, std::optional<NameFault>& fault) const;
  LayerName find_in_mtp(std::string_view numbered, std::optional<NameFault>& fault) const;
  // The one of layers [begin, end) that has parameters named `rest`.
  i64 owner(i64 begin, i64 end, std::string_view symbols, std::string_view rest,
            std::optional<NameFault>& fault) const;
  i64 gpt_owner(i64 number, std::string_view rest, std::optional<NameFault>& fault) const;
  void pair_gpt_layers();

  const LayerPattern& pattern_;
  LayerForm form_;
  std::string_view mtp_block_;
  std::string symbols_, mtp_symbols_;  // by physical layer, of one depth
  std::vector<i64> number_of_;         // by physical layer; -1: the form has none
  std::vector<i64> item_of_, first_of_item_;
  std::vector<i64> attention_, mlp_;  // physical, by GPT layer
};

}  // namespace mckpt::impl
