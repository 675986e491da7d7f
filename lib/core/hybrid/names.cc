// Takes the name of a parameter apart into layer and rest, and puts it together again in another form.
//
//   pattern [*-]M     decoder.layers.0.mlp.linear_fc1.weight              logical
//         find()  ->  {kLayer, layer 1, rest "mlp.linear_fc1.weight"}
//         text()  ->  decoder.layers.0.layers.1.mlp.linear_fc1.weight     member
//
// In the logical form several layers share a number; the family of the rest of the name (here mlp, the
// family of '-') decides which of them is meant.
#include "core/hybrid/names.h"

#include "core/base/error.h"
#include "core/hybrid/keys.h"
#include "core/hybrid/pattern.h"
#include "core/hybrid/spellings.h"

#include <charconv>

namespace mckpt::impl {
namespace {

constexpr std::string_view kLayers = "decoder.layers.", kMtp = "mtp.layers.";
constexpr std::string_view kNorms[] = {kHybridFinalNorm, kGptFinalNorm};
constexpr std::string_view kMtpBlocks[] = {kMtpModule, kOldMtpModule};

// Removes the prefix; false, and the text unchanged, if it is not there.
bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// "12.rest" becomes 12 and "rest".
std::optional<i64> take_number(std::string_view& text) {
  i64 number = -1;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  if (error != std::errc() || number < 0 || !take(rest, ".")) return std::nullopt;
  text = rest;
  return number;
}

// The family whose parameters have names that begin like `rest`; nothing for names of no family.
std::optional<KeyFamily> family_of(std::string_view rest) {
  if (rest.starts_with("mixer.") || rest.starts_with("norm.")) return KeyFamily::kMixer;
  if (rest.starts_with("self_attention.") || rest.starts_with("input_layernorm."))
    return KeyFamily::kAttention;
  if (rest.starts_with("mlp.") || rest.starts_with("pre_mlp_layernorm.")) return KeyFamily::kMlp;
  return {};
}

// Whether a name of the kind's family is one that only other kinds of the family have.
bool is_foreign(LayerKind kind, std::string_view rest) {
  auto any = [&](std::initializer_list<std::string_view> prefixes) {
    return std::any_of(prefixes.begin(), prefixes.end(), [&](auto p) { return rest.starts_with(p); });
  };
  switch (kind) {
    case LayerKind::kMlp:
      return any({"mlp.experts.", "mlp.router.", "mlp.shared_experts."});
    case LayerKind::kMoe:
      return any({"mlp.linear_fc"});
    case LayerKind::kGdn:
      return any({"self_attention.linear_"});
    case LayerKind::kMamba:
      return false;
    default:
      return any({"self_attention.in_proj.", "self_attention.conv1d", "self_attention.A_log",
                  "self_attention.dt_bias", "self_attention.out_proj."});
  }
}

// The fault of a number that the pattern does not have.
NameFault beyond(std::string_view what, i64 count) {
  return {Code::kBadPattern,
          count > 0 ? cat("the pattern has ", what, " 0 to ", count - 1) : cat("the pattern has no ", what)};
}

}  // namespace

std::string_view form_name(LayerForm form) {
  static constexpr std::string_view kNames[] = {"flat", "member", "logical", "gpt", "stacked"};
  return kNames[static_cast<int>(form)];
}

// The tables that find() and text() look up: for each physical layer its item and its number in this form,
// and for each item its first layer.
LayerNames::LayerNames(const LayerPattern& pattern, LayerForm form, std::string_view mtp_block)
    : pattern_(pattern), form_(form), mtp_block_(mtp_block), symbols_(physical_symbols(pattern)) {
  for (const PatternItem& item : pattern.mtp_items) mtp_symbols_ += pattern.symbols(item);
  for (const PatternItem& item : pattern.items) {
    first_of_item_.push_back(item.physical_first);
    item_of_.insert(item_of_.end(), static_cast<std::size_t>(item.physical_count), item.logical_index);
  }
  first_of_item_.push_back(pattern.physical_layers());
  number_of_ = item_of_;
  if (is_gpt(form)) pair_gpt_layers();
  if (form == LayerForm::kFlat)
    for (std::size_t layer = 0; layer < number_of_.size(); layer++)
      number_of_[layer] = static_cast<i64>(layer);
}

// Numbers the attention layers and the MLP layers of the pattern; the i-th of both are GPT layer i. M layers
// get no number.
void LayerNames::pair_gpt_layers() {
  Error e(Code::kNotHeld, "the pattern has layers that a GPT model cannot have");
  e.expected("as many * as - or as E, not both - and E, and no other layers than M").found(pattern_.text);
  auto counts = [](std::string_view symbols, char c) {
    return std::count(symbols.begin(), symbols.end(), c);
  };
  number_of_.assign(symbols_.size(), -1);
  for (std::size_t i = 0; i < symbols_.size(); i++) {
    KeyFamily family = find_layer_kind(symbols_[i])->family;
    if (std::string_view("*-EM").find(symbols_[i]) == std::string_view::npos)
      throw e.note(cat("layer ", i, " is ", symbols_[i], ", ", find_layer_kind(symbols_[i])->words));
    if (family == KeyFamily::kMixer) continue;
    std::vector<i64>& layers = family == KeyFamily::kAttention ? attention_ : mlp_;
    number_of_[i] = std::ssize(layers);
    layers.push_back(static_cast<i64>(i));
  }
  if (attention_.size() != mlp_.size())
    throw e.note(cat(counted(std::ssize(attention_), "layer"),
                     attention_.size() == 1 ? " is *, " : " are *, ", mlp_.size(),
                     mlp_.size() == 1 ? " is - or E" : " are - or E"));
  if (counts(symbols_, '-') > 0 && counts(symbols_, 'E') > 0) throw e.note("the pattern has both - and E");
  bool pair = mtp_symbols_.size() == 2 && counts(mtp_symbols_, '*') == 1 &&
              counts(mtp_symbols_, '-') + counts(mtp_symbols_, 'E') == 1;
  if (!mtp_symbols_.empty() && !pair)
    throw e.note(cat("an MTP depth of a GPT model is one * and one - or E, not ", mtp_symbols_));
}

// GPT layers are pairs of attention and MLP.
i64 LayerNames::layers() const {
  if (is_gpt(form_)) return std::ssize(attention_);
  return form_ == LayerForm::kFlat ? std::ssize(symbols_) : pattern_.logical_layers();
}

// Exactly one layer of the range must be of the family that the name shows, and of a kind that has such a
// name.
i64 LayerNames::owner(i64 begin, i64 end, std::string_view symbols, std::string_view rest,
                      std::optional<NameFault>& fault) const {
  std::optional<KeyFamily> family = family_of(rest);
  if (!family) {
    fault = {Code::kUnaccounted, "no kind of layer of the pattern has such a parameter"};
    return -1;
  }
  i64 found = -1, matches = 0;
  for (i64 layer = begin; layer < end; layer++)
    if (find_layer_kind(symbols[layer])->family == *family) found = layer, matches++;
  bool foreign = matches == 1 && is_foreign(find_layer_kind(symbols[found])->kind, rest);
  if (matches == 1 && !foreign) return found;
  std::string_view here = symbols.substr(begin, end - begin);
  if (matches > 1)
    fault = {Code::kBadPattern,
             cat(matches, " layers of the group [", here, "] have parameters of this name")};
  else if (end - begin == 1)
    fault = {Code::kBadPattern,
             cat("layer ", begin, " of the pattern is ", here, ", ", find_layer_kind(here[0])->words)};
  else
    fault = {Code::kBadPattern, cat("no layer of the group [", here, "] has such a parameter")};
  return -1;
}

// The attention layer or the MLP layer of the pair, by the family of the name.
i64 LayerNames::gpt_owner(i64 number, std::string_view rest, std::optional<NameFault>& fault) const {
  std::optional<KeyFamily> family = family_of(rest);
  if (!family || *family == KeyFamily::kMixer) {
    fault = {Code::kUnaccounted,
             "no layer of a hybrid model that is stored as a GPT model has such a parameter"};
    return -1;
  }
  i64 layer = (*family == KeyFamily::kAttention ? attention_ : mlp_)[number];
  return owner(layer, layer + 1, symbols_, rest, fault);
}

// Names of the final norm, of the main part, of MTP, and everything else.
LayerName LayerNames::find(std::string_view name, std::optional<NameFault>& fault) const {
  for (std::string_view norm : kNorms)
    if (name.starts_with(norm)) return {LayerName::Kind::kFinalNorm, -1, -1, name.substr(norm.size())};
  std::string_view numbered = name;
  if (take(numbered, kLayers)) return find_in_main(numbered, fault);
  if (take(numbered, kMtp)) return find_in_mtp(numbered, fault);
  if (name.find(cat(".", kLayers)) != name.npos)
    fault = {Code::kUnaccounted, "the name has a decoder inside another model, which mckpt does not know"};
  return {};
}

// `rest` begins behind "decoder.layers.": the number, in a group the member's number, and the parameter.
LayerName LayerNames::find_in_main(std::string_view rest, std::optional<NameFault>& fault) const {
  bool begins_with_digit = !rest.empty() && rest[0] >= '0' && rest[0] <= '9';
  if (!begins_with_digit && form_ == LayerForm::kStacked) return {LayerName::Kind::kStack, -1, -1, rest};
  std::optional<i64> number = take_number(rest);
  std::optional<i64> member;
  if (number && take(rest, "layers.") && !(member = take_number(rest))) number.reset();
  LayerName out{LayerName::Kind::kLayer, -1, -1, rest};
  if (!number || form_ == LayerForm::kStacked) {
    fault = {Code::kBadPattern, form_ == LayerForm::kStacked
                                    ? "this layer is stored alone, but the layers of this model are stacked"
                                    : "'layers.' is not followed by the number of a layer"};
  } else if (*number >= layers()) {
    fault = beyond(form_ == LayerForm::kFlat ? "layers"
                   : is_gpt(form_)           ? "GPT layers"
                                             : "logical layers",
                   layers());
  } else if (is_gpt(form_) && !member) {
    out.layer = gpt_owner(*number, rest, fault);
  } else if (form_ == LayerForm::kFlat && !member) {
    out.layer = owner(*number, *number + 1, symbols_, rest, fault);
  } else if (form_ == LayerForm::kLogical && !member) {
    out.layer = owner(first_of_item_[*number], first_of_item_[*number + 1], symbols_, rest, fault);
  } else if (form_ == LayerForm::kMember && member.has_value() == pattern_.items[*number].is_group) {
    i64 at = first_of_item_[*number] + member.value_or(0);
    if (at >= first_of_item_[*number + 1])
      fault = beyond(cat("members of layer ", *number), pattern_.items[*number].physical_count);
    else
      out.layer = owner(at, at + 1, symbols_, rest, fault);
  } else {
    fault = {Code::kBadPattern,
             member ? cat("layer ", *number, " is a single layer, but the name has a member of a group")
                    : cat("layer ", *number, " is a group, but the name does not say which member")};
  }
  return out;
}

// `rest` begins behind "mtp.layers.". A depth has, beside its block of layers, norms and a projection,
// which are the same in every form.
LayerName LayerNames::find_in_mtp(std::string_view rest, std::optional<NameFault>& fault) const {
  std::optional<i64> depth = take_number(rest);
  if (!depth || *depth >= pattern_.mtp_depths) {
    fault = beyond("MTP depths", pattern_.mtp_depths);
    return {};
  }
  std::size_t dot = rest.find('.');
  std::string_view block = rest.substr(0, dot);
  if (std::ranges::find(kMtpBlocks, block) == std::end(kMtpBlocks)) return {};  // norms and projection
  rest.remove_prefix(std::min(rest.size(), block.size() + 1));
  i64 layers = std::ssize(mtp_symbols_), begin = 0, end = layers;
  if (!is_gpt(form_)) {
    std::optional<i64> layer;
    if (take(rest, "layers.")) layer = take_number(rest);
    if (!layer || *layer >= layers) {
      fault = beyond("layers of an MTP depth", layers);
      return {};
    }
    begin = *layer, end = begin + 1;
  }
  return {LayerName::Kind::kLayer, *depth, owner(begin, end, mtp_symbols_, rest, fault), rest};
}

// The first dimension of a stacked tensor counts GPT layers.
LayerName LayerNames::of_stack(std::string_view rest, i64 number, std::optional<NameFault>& fault) const {
  return {LayerName::Kind::kLayer, -1, gpt_owner(number, rest, fault), rest};
}

// The final norm has one name in hybrid models and another in GPT models and groups.
std::string LayerNames::text(const LayerName& name) const {
  if (name.kind == LayerName::Kind::kFinalNorm) {
    bool of_hybrid = form_ == LayerForm::kFlat || form_ == LayerForm::kMember || !pattern_.has_groups();
    return cat(kNorms[of_hybrid && !is_gpt(form_) ? 0 : 1], name.rest);
  }
  if (name.depth >= 0)
    return is_gpt(form_) ? cat(kMtp, name.depth, ".", mtp_block_, ".", name.rest)
                         : cat(mtp_layer_prefix(cat(name.depth), name.layer), name.rest);
  if (form_ == LayerForm::kStacked) return cat(kLayers, name.rest);
  const PatternItem& item = pattern_.items[item_of_[name.layer]];
  std::string front = cat(kLayers, number_of_[name.layer], ".");
  if (form_ == LayerForm::kMember && item.is_group)
    front += cat("layers.", name.layer - item.physical_first, ".");
  return cat(front, name.rest);
}

}  // namespace mckpt::impl
