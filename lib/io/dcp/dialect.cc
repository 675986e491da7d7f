// Recognises the dialect of a DCP folder by its names, and splits keys into section, parameter and field:
//
//   fsdp_dtensor   optimizer.state.module.module.module.decoder.final_layernorm.weight.exp_avg
//                  '-- section -' '----- stripped ----' '---------- parameter ---------' 'field'
//   torch_dist     optimizer.state.exp_avg.decoder.final_layernorm.weight
//                  '-- section -' 'field' '---------- parameter ---------'
#include "io/dcp/dialect.h"

#include <charconv>

#include "io/store/format.h"

namespace mckpt::impl {
namespace {

// Prefixes of the optimizer's keys.
constexpr std::string_view kState = "optimizer.state.", kGroupMeta = "optimizer.param_to_group_meta.";

// Removes the prefix; false, and `text` unchanged, if it is not there.
bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// Takes "model." or, of a run with virtual pipeline stages, "model2.".
bool take_model(std::string_view& text) {
  std::string_view rest = text;
  if (!take_prefix(rest, "model")) return false;
  while (!rest.empty() && rest[0] >= '0' && rest[0] <= '9') rest.remove_prefix(1);
  if (!take_prefix(rest, ".")) return false;
  text = rest;
  return true;
}

// The wrappers of a model each add a "module."; how many there are depends on the run (an fp32 run has one
// fewer).
void strip_modules(std::string_view& text) {
  while (take_prefix(text, "module.")) {
  }
}

bool begins_with_number(std::string_view text) {
  std::size_t digits = text.find_first_not_of("0123456789");
  return digits != 0 && digits != text.npos && text[digits] == '.';
}

// "a.b.c" -> "a.b" and "c".
void split_last(std::string_view text, std::string_view& first, std::string_view& last) {
  std::size_t dot = text.rfind('.');
  if (dot == text.npos) return;
  first = text.substr(0, dot);
  last = text.substr(dot + 1);
}

// torch_dist has the kind of state in front of the parameter's name; no parameter's name begins like one of
// these.
bool take_state_kind(std::string_view& text, std::string_view& kind) {
  for (std::string_view k : {"exp_avg", "exp_avg_sq", "fp32_param", "param"}) {
    std::string_view rest = text;
    if (!take_prefix(rest, k) || !take_prefix(rest, ".")) continue;
    text = rest;
    kind = k;
    return true;
  }
  return false;
}

}  // namespace

Format dcp_format(DcpDialect dialect) {
  switch (dialect) {
    case DcpDialect::kPlain:
      return Format::kDcp;
    case DcpDialect::kFsdpDtensor:
      return Format::kDcpFsdpDtensor;
    case DcpDialect::kMegatronFsdp:
      return Format::kDcpMegatronFsdp;
    case DcpDialect::kStateDict:
      return Format::kDcpStateDict;
    case DcpDialect::kTorchDist:
      return Format::kDcpTorchDist;
  }
  return {};
}

// Notes what only one of the dialects has.
void DialectVotes::tensor(std::string_view name) {
  std::string_view rest = name;
  if (take_model(rest)) {
    (rest.starts_with("module.") ? model_module_ : model_other_) = true;
    char half;
    unsplit(rest, half);
    split_half_ |= half != 0;
  } else if (take_prefix(rest, kState)) {
    (rest.starts_with("module.") ? state_module_
     : begins_with_number(rest)  ? state_number_
                                 : state_name_) = true;
  } else {
    other_tensor_ = true;
  }
}

void DialectVotes::object(std::string_view name) {
  group_meta_ |= name.starts_with(kGroupMeta);
  megatron_item_ |= name == "checkpoint_version" || name == "args";
  shard_object_ |= name.find("/shard_") != name.npos;
}

// The surest evidence first: the marker and sharded objects of torch_dist, then what only fsdp_dtensor's
// optimizer has. Both Megatron dialects call the weights alike, so without an optimizer the objects and the
// split halves decide.
DcpDialect DialectVotes::dialect(bool has_metadata_json) const {
  if (has_metadata_json || shard_object_) return DcpDialect::kTorchDist;
  if (state_module_ || group_meta_) return DcpDialect::kFsdpDtensor;
  if (model_module_ && !model_other_) {
    if (state_number_) return DcpDialect::kMegatronFsdp;
    return megatron_item_ || split_half_ ? DcpDialect::kFsdpDtensor : DcpDialect::kMegatronFsdp;
  }
  return model_other_ && !other_tensor_ && !state_number_ ? DcpDialect::kStateDict : DcpDialect::kPlain;
}

DcpKey split_key(DcpDialect dialect, std::string_view key) {
  using Section = DcpKey::Section;
  DcpKey out;
  std::string_view rest = key;
  switch (dialect) {
    case DcpDialect::kPlain:
      break;
    case DcpDialect::kFsdpDtensor:
    case DcpDialect::kMegatronFsdp:
    case DcpDialect::kStateDict: {
      bool wrapped = dialect != DcpDialect::kStateDict;
      if (take_model(rest)) {
        if (wrapped) strip_modules(rest);
        return {Section::kModel, rest, {}};
      }
      Section section = take_prefix(rest, kState)       ? Section::kState
                        : take_prefix(rest, kGroupMeta) ? Section::kGroupMeta
                                                        : Section::kOther;
      if (section == Section::kOther) break;
      if (wrapped) strip_modules(rest);
      split_last(rest, out.parameter, out.field);
      out.section = out.field.empty() ? Section::kOther : section;
      break;
    }
    case DcpDialect::kTorchDist:
      rest.remove_prefix(chain_bytes(rest));
      if (take_prefix(rest, kState)) {
        if (take_state_kind(rest, out.field)) return {Section::kState, rest, out.field};
      } else if (!rest.starts_with("optimizer.") && key.find('/') == key.npos) {
        return {Section::kModel, key, {}};
      }
      break;
  }
  return out;
}

std::size_t chain_bytes(std::string_view key) {
  constexpr std::string_view kChained = "chained_";
  if (!key.starts_with(kChained)) return 0;
  std::size_t digits = key.find_first_not_of("0123456789", kChained.size());
  return digits != key.npos && digits > kChained.size() && key[digits] == '.' ? digits + 1 : 0;
}

std::string_view unsplit(std::string_view parameter, char& half) {
  half = 0;
  if (!parameter.ends_with("_w") && !parameter.ends_with("_v")) return parameter;
  std::string_view stem = parameter.substr(0, parameter.size() - 2);
  std::string_view leaf =
      stem.substr(0, stem.find_last_not_of("0123456789") + 1);  // less the number of an expert
  if (!leaf.ends_with("linear_fc1.weight") && !leaf.ends_with("linear_fc1.bias")) return parameter;
  half = parameter.back();
  return stem;
}

std::optional<Numbered> numbered(std::string_view name, std::string_view stem) {
  for (std::size_t at = name.find(stem); at != name.npos; at = name.find(stem, at + 1)) {
    const char* first = name.data() + at + stem.size();
    Numbered out;
    auto [end, error] = std::from_chars(first, name.data() + name.size(), out.number);
    if (error != std::errc() || *first == '-') continue;
    out.before = name.substr(0, at + stem.size());
    out.after = name.substr(static_cast<std::size_t>(end - name.data()));
    return out;
  }
  return std::nullopt;
}

}  // namespace mckpt::impl
