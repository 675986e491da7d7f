// Tries the forms of the pattern, the wanted one first: names that already fit are never changed.
#include "convert/layers/model_layers.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "convert/facts/pattern_args.h"
#include "convert/layers/layer_forms.h"
#include "convert/layers/layer_migration.h"
#include "convert/views/piece_store.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/hybrid/names.h"
#include "core/hybrid/pattern.h"
#include "core/hybrid/pipes.h"
#include "core/hybrid/spellings.h"
#include "io/dcp/dcp.h"
#include "io/dcp/keys/dialect.h"
#include "io/dcp/keys/key.h"
#include "io/store/store.h"
#include "mappings/config.h"
#include "mappings/model/expand.h"
#include "mappings/model/grouped_names.h"

namespace mckpt::impl {
namespace {

// Whether the model is a hybrid: some layer has only a mixer or only an MLP. Layers of other models have
// both.
bool is_hybrid(const ModelConfig& model) {
  return std::ranges::any_of(
      model.text.layers, [](const LayerSpec& l) { return l.mixer == Mixer::kNone || l.ffn == Ffn::kNone; });
}

// The number behind "layers." at the front of the name, and what follows it: "3" and "mlp.x" of
// "layers.3.mlp.x". A number that no model has is a name like any other.
std::optional<std::pair<i64, std::string_view>> layer_in(std::string_view name) {
  constexpr std::string_view kLayers = "layers.";
  if (!name.starts_with(kLayers)) return std::nullopt;
  name.remove_prefix(kLayers.size());
  i32 number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const std::size_t digits = static_cast<std::size_t>(end - name.data());
  if (error != std::errc() || number < 0 || digits >= name.size() || name[digits] != '.') return std::nullopt;
  return std::pair(i64{number}, name.substr(digits + 1));
}

// The parameters of the model section, without what is in front of the decoder.
std::vector<std::string_view> decoder_names(const Store& store, DcpDialect dialect) {
  constexpr std::string_view kDecoder = "decoder.";
  std::vector<std::string_view> out;
  for (i64 t = 0; t < store.tensor_count(); t++)
    if (const DcpKey key = split_key(dialect, store.name(t)); key.section == DcpKey::Section::kModel)
      if (key.parameter.starts_with(kDecoder)) out.push_back(key.parameter.substr(kDecoder.size()));
  return out;
}

// The pattern of the model with the groups that the names show: decoder.layers.0.layers.1 is in a group of at
// least two. Nothing if the names show no group, or others than the model's layers can be in.
std::optional<LayerPattern> pattern_of_names(const Store& store, DcpDialect dialect, const ModelMap& map) {
  std::map<i64, i64> members;  // by item that is a group
  const std::vector<std::string_view> names = decoder_names(store, dialect);
  for (std::string_view name : names)
    if (auto item = layer_in(name))
      if (auto member = layer_in(item->second)) {
        i64& count = members[item->first];
        count = std::max(count, member->first + 1);
      }
  if (members.empty()) return std::nullopt;
  const std::string flat = hybrid_pattern(map.model());
  const std::size_t main = std::min(flat.find('/'), flat.size());
  std::string text;
  i64 item = 0;
  for (std::size_t layer = 0; layer < main; item++) {
    auto group = members.find(item);
    const std::size_t count = group == members.end() ? 1 : static_cast<std::size_t>(group->second);
    if (count > main - layer) return std::nullopt;
    const std::string_view symbols = std::string_view(flat).substr(layer, count);
    text += group == members.end() ? std::string(symbols) : cat("[", symbols, "]");
    layer += count;
  }
  if (item <= members.rbegin()->first) return std::nullopt;
  Checked<LayerPattern> checked = check_pattern(cat(text, flat.substr(main)), Dialect::kGrouped);
  LayerPattern* pattern = std::get_if<LayerPattern>(&checked);
  if (!pattern) return std::nullopt;
  const LayerNames grouped(*pattern, LayerForm::kMember);
  for (std::string_view name : names) {
    std::optional<NameFault> fault;
    grouped.find(cat("decoder.", name), fault);
    if (fault) return std::nullopt;
  }
  return std::move(*pattern);
}

bool has_form(const Store& store, const LayerPattern& pattern, LayerForm form) {
  try {
    return misfits(store, *dcp_dialect(store), LayerNames(pattern, form)).empty();
  } catch (const Error&) {  // a GPT model cannot be of the pattern
    return false;
  }
}

bool has_norm_of_groups(const Store& torch_dist) {
  for (i64 t = 0; t < torch_dist.tensor_count(); t++)
    if (torch_dist.name(t).starts_with(kGptFinalNorm)) return true;
  return false;
}

}  // namespace

std::optional<LayerMigration> layers_as_in_model(const Store& store, const ModelMap& map,
                                                 const LayerPattern* groups, bool weights_only) {
  std::optional<LayerPattern> pattern = pattern_of_run(store);
  const DcpDialect dialect = *dcp_dialect(store);
  if (!pattern && dialect == DcpDialect::kFsdpDtensor) pattern = pattern_of_names(store, dialect, map);
  if (!pattern && groups) pattern = *groups;
  if (!pattern || (groups && physical_symbols(*groups) != physical_symbols(*pattern))) return std::nullopt;
  const LayerForm wanted = groups                   ? LayerForm::kMember
                           : is_hybrid(map.model()) ? LayerForm::kFlat
                                                    : LayerForm::kGpt;
  // A name by member belongs to one pattern: names of another pattern can look like it.
  std::vector<LayerForm> forms = {LayerForm::kFlat};
  if (!groups || same_but_pipes(*groups, *pattern)) forms.insert(forms.begin(), wanted);
  if (pattern->has_groups()) forms.insert(forms.end(), {LayerForm::kMember, LayerForm::kLogical});
  auto found = std::ranges::find_if(forms, [&](LayerForm form) { return has_form(store, *pattern, form); });
  if (found == forms.end() || (*found == wanted && forms[0] == wanted)) return std::nullopt;
  LayerNames from(*pattern, *found);
  std::optional<LayerNames> to;
  try {
    to.emplace(groups ? *groups : *pattern, wanted, kMtpModule);
  } catch (const Error&) {
    return std::nullopt;  // a GPT model cannot be of the pattern
  }
  return migrate_layers(store, *dcp_dialect(store), from, *to, {.weights_only = weights_only});
}

std::shared_ptr<const LayerPattern> pattern_of_groups(const Store& store, DcpDialect dialect,
                                                      const ModelMap& map) {
  const bool logical = dialect == DcpDialect::kTorchDist;
  std::optional<LayerPattern> pattern;
  if (logical || dialect == DcpDialect::kFsdpDtensor) pattern = pattern_of_run(store);
  if (!pattern && !logical) {
    pattern = pattern_of_names(store, dialect, map);
    return pattern ? std::make_shared<const LayerPattern>(std::move(*pattern)) : nullptr;
  }
  if (!pattern || !pattern->has_groups() || !is_hybrid(map.model())) return nullptr;
  const LayerForm form = logical ? LayerForm::kLogical : LayerForm::kMember;
  if (!has_form(store, *pattern, form)) return nullptr;
  // Groups of one layer are numbered as without groups; only their final norm is named otherwise in
  // torch_dist.
  if (has_form(store, *pattern, LayerForm::kFlat) && !(logical && has_norm_of_groups(store))) return nullptr;
  return std::make_shared<const LayerPattern>(std::move(*pattern));
}

std::unique_ptr<PieceStore> migrated(std::unique_ptr<Store> store, const LayerMigration& migration,
                                     bool with_files) {
  auto out = std::make_unique<PieceStore>(std::move(store));
  for (const MovedTensor& t : migration.tensors) {
    std::vector<StorePiece> pieces;
    for (const MovedPiece& p : t.pieces) {
      StorePiece piece{p.tensor, {}, p.first_row, p.rows, 0};
      if (p.from_layer >= 0) piece.at.push_back(p.from_layer);
      pieces.push_back(std::move(piece));
    }
    std::span<const i64> dims = t.shape.dims();
    out->add(t.name, {dims.begin(), dims.end()}, std::move(pieces));
  }
  for (const MovedObject& o : migration.objects) out->add_object(o.name, o.object);
  const Store& source = out->source();
  for (i64 o = 0; o < std::ssize(source.objects()); o++)
    if (const Object& file = source.objects()[o]; with_files && is_file(source, file))
      out->add_object(file.name, o);
  return out;
}

bool has_grouped_layers(const Store& store) {
  std::optional<LayerPattern> pattern = pattern_of_run(store);
  return pattern && pattern->has_groups();
}

std::unique_ptr<Store> with_flat_layers(std::unique_ptr<Store> store, DcpDialect dialect) {
  LayerPattern pattern = *pattern_of_run(*store);
  constexpr LayerForm kForms[] = {LayerForm::kLogical, LayerForm::kMember, LayerForm::kFlat};
  LayerForm form = detect_form(*store, dialect, pattern, kForms, true);
  if (form == LayerForm::kFlat) return store;
  bool torch_dist = dialect == DcpDialect::kTorchDist;
  LayerNames from(pattern, form), to(pattern, LayerForm::kFlat, torch_dist ? kOldMtpModule : kMtpModule);
  LayerMigration moved = migrate_layers(*store, dialect, from, to, {});
  return migrated(std::move(store), moved);
}

}  // namespace mckpt::impl
