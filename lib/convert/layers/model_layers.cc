// Tries the forms of the pattern, the wanted one first: names that already fit are never changed.
#include "convert/layers/model_layers.h"

#include <algorithm>

#include "convert/facts/pattern_args.h"
#include "convert/layers/layer_forms.h"
#include "convert/layers/layer_migration.h"
#include "convert/views/piece_store.h"
#include "core/base/error.h"
#include "core/hybrid/names.h"
#include "core/hybrid/pattern.h"
#include "core/hybrid/spellings.h"
#include "io/dcp/dcp.h"
#include "io/dcp/keys/dialect.h"
#include "io/store/store.h"
#include "mappings/config.h"
#include "mappings/model/expand.h"

namespace mckpt::impl {
namespace {

// Whether the model is a hybrid: some layer has only a mixer or only an MLP. Layers of other models have
// both.
bool is_hybrid(const ModelConfig& model) {
  return std::ranges::any_of(
      model.text.layers, [](const LayerSpec& l) { return l.mixer == Mixer::kNone || l.ffn == Ffn::kNone; });
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
  if (!pattern && groups) pattern = *groups;
  if (!pattern || (groups && physical_symbols(*groups) != physical_symbols(*pattern))) return std::nullopt;
  const LayerForm wanted = groups                   ? LayerForm::kMember
                           : is_hybrid(map.model()) ? LayerForm::kFlat
                                                    : LayerForm::kGpt;
  // A name by member belongs to one pattern: names of another pattern can look like it.
  std::vector<LayerForm> forms = {LayerForm::kFlat};
  if (!groups || groups->text == pattern->text) forms.insert(forms.begin(), wanted);
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

std::shared_ptr<const LayerPattern> pattern_of_groups(const Store& store, const ModelMap& map) {
  std::optional<LayerPattern> pattern = pattern_of_run(store);
  if (!pattern || !pattern->has_groups() || !is_hybrid(map.model())) return nullptr;
  const bool logical = dcp_dialect(store) == DcpDialect::kTorchDist;
  const LayerForm form = logical ? LayerForm::kLogical : LayerForm::kMember;
  if (!has_form(store, *pattern, form)) return nullptr;
  // Groups of one layer are numbered as without groups; only their final norm is named otherwise in torch_dist.
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
