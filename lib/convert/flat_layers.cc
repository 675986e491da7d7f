#include "convert/flat_layers.h"

#include "convert/layer_migration.h"
#include "convert/pattern_args.h"
#include "core/layer_pattern.h"
#include "io/run_args.h"

namespace mckpt {
namespace {

std::optional<LayerPattern> own_pattern(const Store& store) {
  std::shared_ptr<const PickleValue> args = args_of(store);
  std::optional<std::string> text = args ? pattern_of_args(*args) : std::nullopt;
  if (!text) return std::nullopt;
  return parse_pattern(*text, Dialect::kGrouped);
}

}  // namespace

bool has_grouped_layers(const Store& store) {
  try {
    std::optional<LayerPattern> pattern = own_pattern(store);
    return pattern && pattern->has_groups();
  } catch (const Error&) {
    return false;  // args that cannot be read are told elsewhere
  }
}

std::unique_ptr<Store> with_flat_layers(std::unique_ptr<Store> store, DcpDialect dialect) {
  LayerPattern pattern = *own_pattern(*store);
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
