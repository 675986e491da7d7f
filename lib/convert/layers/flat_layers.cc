#include "convert/layers/flat_layers.h"

#include "convert/layers/layer_migration.h"
#include "convert/layers/run_pattern.h"

namespace mckpt {
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
  LayerNames from(pattern, form),
      to(pattern, LayerForm::kFlat, torch_dist ? "transformer_layer" : "mtp_model_layer");
  LayerMigration moved = migrate_layers(*store, dialect, from, to, {});
  auto flat = std::make_unique<PieceStore>(std::move(store));
  for (const MovedTensor& t : moved.tensors) {
    std::vector<StorePiece> pieces;
    for (const MovedPiece& p : t.pieces)
      pieces.push_back({.tensor = p.tensor, .first_row = p.first_row, .rows = p.rows});
    flat->add(t.name, {t.shape.dims().begin(), t.shape.dims().end()}, std::move(pieces));
  }
  return flat;
}

}  // namespace mckpt
