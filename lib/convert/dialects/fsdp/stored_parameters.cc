// Names are taken apart; planner_data gives the order where the folder has it, otherwise the store does.
#include "convert/dialects/fsdp/stored_parameters.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "core/base/name_hash.h"
#include "core/base/text.h"
#include "core/items/item_cast.h"
#include "core/items/shape.h"
#include "io/dcp/dcp.h"
#include "io/dcp/keys/dialect.h"
#include "io/dcp/keys/key.h"
#include "io/dcp/keys/without_states.h"
#include "io/store/store.h"
#include "mappings/fsdp/fp8.h"

namespace mckpt::impl {
namespace {

bool is_fused_down(std::string_view name) { return name.find("linear_qkv_down_proj") != name.npos; }

// The parameter that a stored tensor is a part of. The down projections of latent attention are stored apart
// also by runs that have them apart, and stay two parameters.
std::string whole_name(DcpDialect dialect, std::string_view name) {
  if (dialect != DcpDialect::kFsdpDtensor) return std::string(name);
  std::string whole = parameter_of_piece(name);
  return is_fused_down(whole) ? std::string(name) : whole;
}

// The number of the expert in "....experts.linear_fc1.weight12" or "....local_experts.12.linear_fc1.weight";
// -1 without one, or where it is longer than a number of an expert can be.
i64 expert_number(std::string_view name) {
  if (auto local = numbered(name, ".local_experts.")) return local->number;
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  i64 number = -1;
  const auto [end, error] = std::from_chars(name.data() + digits, name.data() + name.size(), number);
  return error == std::errc() ? number : -1;
}

// Up to and with the number behind `stem`: "decoder.layers.3" of "decoder.layers.3.mlp.x"; "" without it.
std::string module_at(std::string_view name, std::string_view stem) {
  auto found = numbered(name, stem);
  if (!found || (!found->after.empty() && found->after[0] != '.')) return "";
  return std::string(name.substr(0, name.size() - found->after.size()));
}

// The layer of Megatron's that owns the parameter, and the stack around it.
void find_layer(StoredParameter& p) {
  const std::string_view name = p.name;
  if (std::string depth = module_at(name, "mtp.layers."); !depth.empty()) {
    for (const char* inner : {".mtp_model_layer", ".transformer_layer"}) {
      const std::string module = cat(depth, inner);
      if (!name.starts_with(cat(module, "."))) continue;
      const std::string layer = module_at(name, cat(module, ".layers."));
      p.layer = layer.empty() ? module : layer;
      p.stack = module;
    }
    return;
  }
  const std::size_t decoder = name.find("decoder.");
  if (decoder == name.npos) return;
  p.layer = module_at(name, "decoder.layers.");
  if (const std::string member = module_at(name, cat(p.layer, ".layers."));
      !p.layer.empty() && !member.empty()) {
    p.stack = p.layer;
    p.layer = member;
    p.in_group = true;
  } else {
    p.stack = std::string(name.substr(0, decoder + std::string_view("decoder").size()));
  }
}

// Up to the first number in the name: "blocks.0" of "blocks.0.lin1.weight".
std::string numbered_module(std::string_view name) {
  for (std::size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1)) {
    std::size_t end = name.find_first_not_of("0123456789", dot + 1);
    if (end != name.npos && end > dot + 1 && name[end] == '.') return std::string(name.substr(0, end));
  }
  return "";
}

// Whether the parameter is in a layer of the text model or in MTP.
bool is_of_text(const StoredParameter& p) {
  if (p.name.starts_with("mtp.")) return true;
  return !p.layer.empty() && (p.name.starts_with("decoder.") || p.name.starts_with("language_model."));
}

// Which mixers each layer has decides its class.
void find_layers(StoredParameters& out) {
  for (StoredParameter& p : out.all) {
    find_layer(p);
    out.megatron_names |= !p.layer.empty();
    out.has_groups |= p.in_group;
  }
  struct Mixers {
    bool mamba = false, attention = false;
  };
  std::map<std::string, Mixers> mixers;
  for (StoredParameter& p : out.all) {
    if (!out.megatron_names) p.layer = numbered_module(p.name);
    Mixers& m = mixers[p.layer];
    m.mamba |= p.name.find(".mixer.") != p.name.npos;
    m.attention |= p.name.find(".self_attention.") != p.name.npos;
  }
  for (StoredParameter& p : out.all) {
    p.linear = p.dims.size() == 2 && is_of_text(p) && is_fp8_name(p.name);
    const Mixers& m = mixers[p.layer];
    if (!p.layer.empty() && !(m.mamba && m.attention))
      p.layer_class = m.mamba ? UnitClass::kMambaLayer : UnitClass::kTransformerLayer;
  }
}

// Names of modules have far fewer letters; looking for each part of a longer one takes long.
constexpr std::size_t kMostLetters = 4096;

// Where a fused parameter goes back to: behind its module's other parameters, so in front of the first
// parameter of one of the modules that the run registers after it. The fronts of the names of these.
std::vector<std::string> followers(std::string_view fused) {
  if (std::size_t fc1 = fused.rfind("linear_fc1."); fc1 != fused.npos)
    return {cat(fused.substr(0, fc1), "linear_fc2.")};
  for (std::string_view module : {"in_proj.", "conv1d."})
    if (std::size_t at = fused.rfind(module); at != fused.npos) {
      const std::string_view parent = fused.substr(0, at);
      return {cat(parent, "out_norm."), cat(parent, "norm."), cat(parent, "out_proj.")};
    }
  return {};
}

// pre: parameters of several parts were saved behind the others.
void put_back_fused(std::vector<StoredParameter>& all) {
  auto fused = [](const StoredParameter& p) { return p.parts.size() > 1; };
  std::vector<StoredParameter> moved;
  std::ranges::copy_if(all, std::back_inserter(moved), fused);
  if (moved.empty()) return;
  std::erase_if(all, fused);
  // By layer and the front of a name that follows. A list is looked at once, as it is placed by the first
  // name.
  std::vector<StoredParameter> out;
  std::vector<bool> placed(moved.size());
  NameMap<std::string, std::vector<std::size_t>> waiting;
  for (std::size_t i = 0; i < moved.size(); i++)
    for (const std::string& front : followers(moved[i].name))
      waiting[cat(moved[i].layer, ":", front)].push_back(i);
  for (StoredParameter& p : all) {
    const std::string_view name = p.name;
    for (std::size_t dot = name.find('.'); dot != name.npos && dot < kMostLetters;
         dot = name.find('.', dot + 1)) {
      const auto list = waiting.find(cat(p.layer, ":", name.substr(0, dot + 1)));
      if (list == waiting.end()) continue;
      for (std::size_t i : list->second) {
        if (placed[i]) continue;
        out.push_back(moved[i]);
        placed[i] = true;
      }
      waiting.erase(list);
    }
    out.push_back(std::move(p));
  }
  for (std::size_t i = 0; i < moved.size(); i++)
    if (!placed[i]) out.push_back(std::move(moved[i]));
  all = std::move(out);
}

// v2 saves every parameter as fp32, frozen ones too: a tensor of another type is a buffer.
bool is_other_type(const Store& store, DcpDialect dialect, i64 tensor, bool some_fp32) {
  return dialect == DcpDialect::kStateDict && some_fp32 && store.dtype(tensor) != DType::kF32;
}

// The tensors of the model, in the order of the run as far as the folder has it.
std::vector<i64> tensors_in_order(const Store& store, DcpDialect dialect) {
  std::vector<i64> out;
  NameMap<std::string_view, i64> by_name;
  for (i64 t = 0; t < store.tensor_count(); t++) {
    if (split_key(dialect, store.name(t)).section != DcpKey::Section::kModel) continue;
    if (is_castable(store.dtype(t))) by_name.emplace(store.name(t), t);
  }
  const bool some_fp32 = std::ranges::any_of(
      by_name, [&](const auto& named) { return store.dtype(named.second) == DType::kF32; });
  std::set<i64> seen;
  auto add = [&](i64 t) {
    if (!is_other_type(store, dialect, t, some_fp32) && seen.insert(t).second) out.push_back(t);
  };
  for (std::string_view name : dcp_saved_order(store))
    if (auto at = by_name.find(name); at != by_name.end()) add(at->second);
  for (i64 t = 0; t < store.tensor_count(); t++)
    if (by_name.contains(store.name(t))) add(t);
  return out;
}

// The parameters that have states, by their names without wrappers; none where states have numbers.
NameSet<std::string> with_states(const Store& store, DcpDialect dialect) {
  NameSet<std::string> out;
  if (dialect == DcpDialect::kMegatronFsdp) return out;
  for (i64 t = 0; t < store.tensor_count(); t++) {
    const DcpKey key = split_key(dialect, store.name(t));
    if (key.section == DcpKey::Section::kState) out.insert(whole_name(dialect, key.parameter));
  }
  return out;
}

// Equal for two tensors with the same dimensions and boxes.
std::string boxes_of(const Store& store, i64 tensor) {
  std::string out;
  auto add = [&](std::span<const i64> numbers) {
    out.append(reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes());
  };
  add(store.dims(tensor));
  for (i64 i = 0; i < store.chunk_count(tensor); i++) {
    const Chunk c = store.chunk(tensor, i);
    add(c.offsets), add(c.sizes);
  }
  return out;
}

// A second name of a tied weight is saved by v2 alone, and has no states.
void find_second_names(const Store& store, const NameSet<std::string>& states, StoredParameters& out) {
  NameMap<std::string, i64> first;  // by dimensions and boxes; the number of dimensions tells lists apart
  for (std::size_t i = 0; i < out.all.size(); i++) {
    StoredParameter& p = out.all[i];
    if (!p.layer.empty() || p.dims.size() < 2) continue;
    const auto [at, fresh] =
        first.try_emplace(cat(p.dims.size(), ":", boxes_of(store, p.parts[0].tensor)), static_cast<i64>(i));
    if (!fresh && !states.contains(p.name)) p.alike = at->second;
  }
}

// A parameter without states is frozen, if others have some. Without any states the types tell: v1 saves
// what is trained as fp32 and what is frozen as the model has it.
void find_frozen(const Store& store, const NameSet<std::string>& states, StoredParameters& out) {
  auto is_fp32 = [&](const StoredParameter& p) { return store.dtype(p.parts[0].tensor) == DType::kF32; };
  const bool mixed = std::ranges::any_of(out.all, is_fp32) && !std::ranges::all_of(out.all, is_fp32);
  for (StoredParameter& p : out.all) {
    if (!states.empty()) p.trainable = states.contains(p.name);
    if (states.empty() && mixed) p.trainable = is_fp32(p);
  }
}

void find_experts(StoredParameters& out) {
  std::map<std::string, i64> count;  // by name without the number
  std::set<i64> numbers;
  auto stem = [](const StoredParameter& p) {
    return p.name.substr(0, p.name.find_last_not_of("0123456789") + 1);
  };
  for (StoredParameter& p : out.all) {
    p.expert = p.name.find(".experts.") != p.name.npos;
    if (!p.expert) continue;
    p.expert_number = expert_number(p.name);
    if (p.expert_number < 0) continue;
    count[stem(p)]++;
    numbers.insert(p.expert_number);
  }
  out.experts = std::ssize(numbers);
  // Biases keep the number that they have on their rank, so that all expert-parallel ranks save them under
  // the same names.
  for (StoredParameter& p : out.all)
    if (p.expert && p.expert_number >= 0 && p.name.find(".bias") != p.name.npos &&
        count[stem(p)] < out.experts)
      p.expert_number = -1;
}

}  // namespace

StoredParameters stored_parameters(const Store& store, DcpDialect dialect) {
  StoredParameters out;
  NameMap<std::string, std::size_t> number;
  for (i64 t : tensors_in_order(store, dialect)) {
    const std::string_view name = split_key(dialect, store.name(t)).parameter;
    if (is_without_states(name)) continue;
    const std::span<const i64> dims = store.dims(t);
    const i64 rows = dims.empty() ? 1 : dims[0];
    auto [at, fresh] = number.try_emplace(whole_name(dialect, name), out.all.size());
    if (fresh) {
      out.all.emplace_back().name = at->first;
      out.all.back().dims.assign(dims.begin(), dims.end());
    } else if (!dims.empty()) {
      out.all[at->second].dims[0] += rows;
    }
    out.all[at->second].parts.push_back({t, rows});
  }
  find_layers(out);
  find_experts(out);
  put_back_fused(out.all);
  const NameSet<std::string> states = with_states(store, dialect);
  find_frozen(store, states, out);
  if (dialect == DcpDialect::kStateDict) find_second_names(store, states, out);
  return out;
}

}  // namespace mckpt::impl
