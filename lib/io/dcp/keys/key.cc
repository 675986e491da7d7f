// Takes keys apart by the prefixes that the writers of each dialect use; a key that follows no known form is
// all front, without a name.
#include "io/dcp/keys/key.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "core/base/text.h"
#include "core/hybrid/mtp_names.h"
#include "io/dcp/keys/dialect.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kShard = "/shard_";

// Removes the prefix; false, and `text` unchanged, if it is not there.
bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
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

// The length of "chained_0." in front of a key of torch_dist, 0 without it. Models with experts have two
// optimizers, and Megatron chains them.
std::size_t chain_bytes(std::string_view key) {
  constexpr std::string_view kChained = "chained_";
  if (!key.starts_with(kChained)) return 0;
  std::size_t digits = key.find_first_not_of("0123456789", kChained.size());
  return digits != key.npos && digits > kChained.size() && key[digits] == '.' ? digits + 1 : 0;
}

// In torch_dist, the state of an optimizer is named in front of the parameter
// ("optimizer.state.exp_avg.decoder..."), and '/' begins what is not a name ("/shard_0_4").
KeySection torch_dist_section(std::string_view key) {
  std::size_t tail = std::min(key.find('/'), key.size());
  std::string_view base = key.substr(0, tail);
  std::size_t begin = chain_bytes(base);
  bool optimizer = is_optimizer_key(base.substr(begin)) || base == "optimizer";
  if (optimizer) {
    std::size_t dot = base.substr(begin).starts_with(kStateSection)
                          ? base.find('.', begin + kStateSection.size())
                          : base.npos;
    begin = dot == base.npos ? tail : dot + 1;
  }
  return {key.substr(0, begin), key.substr(begin, tail - begin), key.substr(tail), optimizer};
}

// Takes "0.1.2" from the front of the text. False if the text does not begin with a number.
bool take_numbers(std::string_view& text, std::vector<i64>& out) {
  while (true) {
    i64 number = -1;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || number < 0) return false;
    out.push_back(number);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (!text.starts_with('.')) return true;
    text.remove_prefix(1);
  }
}

// The first parts of names of optimizers, as training programs write them.
constexpr std::string_view kOptimizers[] = {"optimizer",        "optimizers",           "optimizer_state",
                                            "optimizer_states", "optimizer_state_dict", "optim",
                                            "optim_state",      "optim_state_dict"};

}  // namespace

bool is_optimizer_key(std::string_view key) { return key.starts_with("optimizer."); }

std::string_view section_word(std::string_view name) {
  std::string_view part = name.substr(0, name.find_first_of(".:/"));
  std::size_t digits = part.find_last_not_of("0123456789");
  bool numbered = digits != part.npos && digits + 1 < part.size() && part[digits] == '_';
  return numbered ? part.substr(0, digits) : part;
}

bool is_of_optimizer(std::string_view name) {
  take_prefix(name, "app.");
  return std::ranges::find(kOptimizers, section_word(name)) != std::end(kOptimizers);
}

bool take_model(std::string_view& text) {
  std::string_view rest = text;
  if (!take_prefix(rest, "model")) return false;
  while (!rest.empty() && rest[0] >= '0' && rest[0] <= '9') rest.remove_prefix(1);
  if (!take_prefix(rest, ".")) return false;
  text = rest;
  return true;
}

void take_wrappers(std::string_view& key) {
  while (take_prefix(key, "module.")) {
  }
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
        if (wrapped) take_wrappers(rest);
        return {Section::kModel, rest, {}};
      }
      Section section = take_prefix(rest, kStateSection)       ? Section::kState
                        : take_prefix(rest, kGroupMetaSection) ? Section::kGroupMeta
                                                               : Section::kOther;
      if (section == Section::kOther) break;
      if (wrapped) take_wrappers(rest);
      split_last(rest, out.parameter, out.field);
      out.section = out.field.empty() ? Section::kOther : section;
      break;
    }
    case DcpDialect::kTorchDist:
      rest.remove_prefix(chain_bytes(rest));
      if (take_prefix(rest, kStateSection)) {
        if (take_state_kind(rest, out.field)) return {Section::kState, rest, out.field};
      } else if (!is_optimizer_key(rest) && key.find('/') == key.npos) {
        return {Section::kModel, key, {}};
      }
      break;
  }
  return out;
}

KeySection key_section(DcpDialect dialect, std::string_view key) {
  if (dialect == DcpDialect::kTorchDist) return torch_dist_section(key);
  DcpKey parts = split_key(dialect, key);
  bool optimizer = is_optimizer_key(key);
  if (parts.parameter.empty()) return {key, {}, {}, optimizer};
  std::size_t begin = static_cast<std::size_t>(parts.parameter.data() - key.data());
  return {key.substr(0, begin), parts.parameter, key.substr(begin + parts.parameter.size()), optimizer};
}

std::optional<std::string> model_key(std::string_view name) {
  if (!take_prefix(name, "model.")) return std::nullopt;
  take_wrappers(name);
  return with_usual_mtp(std::string(name));
}

std::optional<StateName> state_name(std::string_view name) {
  if (!name.starts_with(kStateSection)) return std::nullopt;
  std::size_t last = name.rfind('.');
  if (last <= kStateSection.size()) return std::nullopt;
  std::string_view middle = name.substr(kStateSection.size(), last - kStateSection.size());
  std::optional<std::string> key = model_key(cat("model.", middle));
  return StateName{std::move(*key),
                   {kOptimizerDot, static_cast<i32>(kStateSection.size()) - 1, static_cast<i32>(last)}};
}

std::optional<GroupField> group_field(std::string_view object) {
  if (!take_prefix(object, kGroupListSection)) return std::nullopt;
  std::size_t dot = object.rfind('.');
  if (dot == object.npos) return std::nullopt;
  return GroupField{object.substr(0, dot), object.substr(dot + 1)};
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

std::string parameter_of_piece(std::string_view parameter) {
  char half;
  std::string_view name = unsplit(parameter, half);
  if (half == 0) {
    std::size_t dot = name.rfind('.');
    std::string_view stem = name.substr(0, dot == name.npos ? 0 : dot), leaf = name.substr(stem.size());
    bool splits =
        stem.ends_with("in_proj.weight") || stem.ends_with("conv1d.weight") || stem.ends_with("conv1d.bias");
    constexpr std::array<std::string_view, 6> kParts = {".query", ".key", ".value", ".z", ".beta", ".alpha"};
    if (splits && std::find(kParts.begin(), kParts.end(), leaf) != kParts.end()) name = stem;
  }
  std::string out(name);
  for (std::string_view part : {"linear_q_down_proj.", "linear_kv_down_proj."})
    if (std::size_t at = out.find(part); at != out.npos)
      out.replace(at, part.size(), "linear_qkv_down_proj.");
  return out;
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

std::optional<ObjectShard> object_shard(std::string_view tail) {
  ObjectShard out;
  if (!tail.starts_with(kShard)) return std::nullopt;
  tail.remove_prefix(kShard.size());
  if (!take_numbers(tail, out.offset) || !tail.starts_with('_')) return std::nullopt;
  tail.remove_prefix(1);
  if (!take_numbers(tail, out.shape) || !tail.empty() || out.offset.size() != out.shape.size())
    return std::nullopt;
  return out;
}

std::string to_string(const ObjectShard& shard) {
  auto joined = [](const std::vector<i64>& numbers) {
    std::string out;
    for (i64 n : numbers) out += cat(out.empty() ? "" : ".", n);
    return out;
  };
  return cat(kShard, joined(shard.offset), "_", joined(shard.shape));
}

std::vector<i32> nesting_dots(std::string_view key) {
  std::vector<i32> all;
  for (std::size_t at = key.find('.'); at != key.npos; at = key.find('.', at + 1))
    all.push_back(static_cast<i32>(at));
  if ((key.starts_with(kGroupMetaSection) || key.starts_with(kStateSection)) && all.size() > 2)
    return {all[0], all[1], all.back()};
  if (key.starts_with("opt_param_scheduler.") && !all.empty()) return {all[0]};
  if (key.starts_with("rng_state.")) return all;
  if (split_key(DcpDialect::kFsdpDtensor, key).section == DcpKey::Section::kModel) return {all[0]};
  return {};
}

}  // namespace mckpt::impl
