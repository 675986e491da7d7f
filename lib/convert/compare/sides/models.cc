// Two configs with other sizes are two models, and so is a checkpoint that cannot be opened with the other
// side's config.
#include "convert/compare/sides/models.h"

#include "convert/open/open.h"
#include "convert/open/source_model.h"
#include "core/base/error.h"
#include "hf/config/unlike_settings.h"
#include "io/dcp/dcp.h"
#include "io/dcp/keys/dialect.h"
#include "io/file/folder.h"
#include "io/json/json_file.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

std::string config_in(const std::string& assets, const OpenOptions& opening) {
  const Folder folder(assets, opening);
  return folder.has_file("config.json") ? json_text(folder.open_file("config.json")) : "";
}

// Whether both sides have the config of a model, and these are two models. The tensors of one cannot be read
// with the config of the other.
bool have_two_models(const Store& tested, const Store& source) {
  const std::string one = own_assets(tested), other = own_assets(source);
  if (one.empty() || other.empty()) return false;
  const std::string here = config_in(one, tested.opening()), there = config_in(other, source.opening());
  if (here.empty() || there.empty()) return false;
  return !unlike_sizes(here, there).empty();
}

// Whether the store, which has no assets, holds another model than `assets`, the assets of the other side,
// describe.
bool is_of_another_model(const Store& store, const std::string& assets, CheckpointOptions how) {
  if (!own_assets(store).empty()) return false;
  how.names = KeyNames::kToCompare, how.states = StateUse::kLeftOfRanks, how.records_apart = true;
  how.assets = assets;
  how.source_tp.reset(), how.source_etp.reset();
  try {
    open_sharded(open_store(store.root(), store.opening()), {.source = store.root(), .how = how});
    return false;
  } catch (const Error& e) {
    return e.code() == Code::kContradiction || e.code() == Code::kUnaccounted ||
           e.code() == Code::kSourceShape;
  }
}

}  // namespace

Models models_of(const Store& tested, const Store& source, const std::string& assets,
                 const CheckpointOptions& opening) {
  if (opening.assets || assets.empty()) return Models::kOne;
  const bool one_format = dcp_dialect(tested) == dcp_dialect(source) && tested.format() == source.format();
  if (have_two_models(tested, source)) return one_format ? Models::kTwoByOwnNames : Models::kTwo;
  for (const Store* side : {&tested, &source})
    if (one_format && is_of_another_model(*side, assets, opening)) return Models::kTwoByOwnNames;
  return Models::kOne;
}

}  // namespace mckpt::impl
