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
#include "io/dcp/keys/dialect.h"
#include "mappings/config.h"
#include "mappings/model/expand.h"

namespace mckpt::impl {
namespace {

constexpr DcpDialect kDialect = DcpDialect::kFsdpDtensor;

// Whether the model is a hybrid: some layer has only a mixer or only an MLP. Layers of other models have
// both.
bool is_hybrid(const ModelConfig& model) {
  return std::ranges::any_of(
      model.text.layers, [](const LayerSpec& l) { return l.mixer == Mixer::kNone || l.ffn == Ffn::kNone; });
}

bool has_form(const Store& store, const LayerPattern& pattern, LayerForm form) {
  try {
    return misfits(store, kDialect, LayerNames(pattern, form)).empty();
  } catch (const Error&) {  // a GPT model cannot be of the pattern
    return false;
  }
}

}  // namespace

std::optional<LayerMigration> layers_as_in_model(const Store& store, const ModelMap& map, bool weights_only) {
  std::optional<LayerPattern> pattern = pattern_of_run(store);
  if (!pattern) return std::nullopt;
  LayerForm wanted = is_hybrid(map.model()) ? LayerForm::kFlat : LayerForm::kGpt;
  std::vector<LayerForm> forms = {wanted, LayerForm::kFlat};
  if (pattern->has_groups()) forms.insert(forms.end(), {LayerForm::kMember, LayerForm::kLogical});
  auto found = std::ranges::find_if(forms, [&](LayerForm form) { return has_form(store, *pattern, form); });
  if (found == forms.end() || *found == wanted) return std::nullopt;
  LayerNames from(*pattern, *found);
  std::optional<LayerNames> to;
  try {
    to.emplace(*pattern, wanted, kMtpModule);
  } catch (const Error&) {
    return std::nullopt;  // a GPT model cannot be of the pattern
  }
  return migrate_layers(store, kDialect, from, *to, {.weights_only = weights_only});
}

std::shared_ptr<const LayerPattern> pattern_of_members(const Store& store, const ModelMap& map) {
  std::optional<LayerPattern> pattern = pattern_of_run(store);
  if (!pattern || !pattern->has_groups() || !is_hybrid(map.model())) return nullptr;
  if (has_form(store, *pattern, LayerForm::kFlat) || !has_form(store, *pattern, LayerForm::kMember))
    return nullptr;
  return std::make_shared<const LayerPattern>(std::move(*pattern));
}

std::unique_ptr<PieceStore> migrated(std::unique_ptr<Store> store, const LayerMigration& migration) {
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
