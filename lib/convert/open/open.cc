// Asks the names of the tensors: a model's names make it a model, whatever the format, and all other names
// make it a checkpoint of Megatron.
#include "convert/open/open.h"

#include "convert/open/choice.h"
#include "convert/open/openers.h"
#include "convert/open/unsaid_order.h"
#include "convert/open/without_effect.h"
#include "core/base/error.h"
#include "hf/adapter/adapted_store.h"
#include "io/store/store.h"
#include "mappings/model/run_setup.h"

namespace mckpt::impl {

bool is_of_model(const Store& store) {
  return format_family(store.format()) == FormatFamily::kSafetensors || has_own_names(store);
}

Opened open(const OpenAs& how) {
  if (how.model_alone) return open_table(how);
  return open(open_store(how.source, how.how.model.files), how);
}

Opened open(std::unique_ptr<Store> store, const OpenAs& how) {
  // A Hugging Face folder is already what a model without a table would become: open_sharded() says so.
  const bool exported = store->driver().hf_weights && !store->traits.of_verl;
  const bool without = adapted_view(*store) || (!exported && has_own_names(*store));
  if (how.with_table ? is_of_model(*store) : without) {
    refuse_without_effect(given_settings(how.how), *store, "the source has", how.with_table);
    if (how.with_table) return open_table(std::move(store), how);
    return open_own(std::move(store), {.source = how.source,
                                       .assets = how.how.assets,
                                       .model_dict = how.model_dict,
                                       .accept = how.how.accept,
                                       .threads = how.threads});
  }
  refuse_model_dict(how.model_dict, how.source);
  return open_sharded(std::move(store), how);
}

namespace {

Opened opened_sharded(CheckpointModel checkpoint, const OpenAs& how) {
  Opened out;
  out.opening = how.how.model.files;
  out.sharded = std::make_unique<CheckpointModel>(std::move(checkpoint));
  const CheckpointModel& model = *out.sharded;
  out.folders.push_back(model.store().root());
  if (!model.assets_path().empty()) out.folders.push_back(model.assets_path());
  out.damage.push_back({model.store().root(), model.oddities()});
  note_choice(how.source, model.on_disk(), out.notes);
  warn_of_unsaid_order(model.on_disk(), out.notes);
  return out;
}

}  // namespace

Opened open_sharded(std::unique_ptr<Store> store, const OpenAs& how) {
  return opened_sharded(open_checkpoint(std::move(store), how.how), how);
}

Opened open_sharded(std::unique_ptr<Store> store, std::shared_ptr<const HfModel> model, const OpenAs& how,
                    const RunSetup& setup) {
  return opened_sharded({std::move(store), std::move(model), how.how, setup}, how);
}

Opened open_own(std::unique_ptr<Store> store, const OwnModelOptions& how) {
  const AdaptedStore* view = adapted_view(*store);  // the model keeps it
  Opened out = opened(open_own_model(std::move(store), how));
  if (view) out.adapted = view;
  note_choice(how.source, *out.own->store, out.notes);
  return out;
}

Opened opened(OwnModel model) {
  Opened out;
  out.own = std::make_unique<OwnModel>(std::move(model));
  OwnModel& own = *out.own;
  out.opening = own.store->opening();
  out.folders.push_back(own.store->root());
  // The folder around a checkpoint is not a source as a whole: the result may be made beside the checkpoint.
  if (!own.folder.path.empty() && !own.folder.of_a_run) out.folders.push_back(own.folder.path);
  out.damage.push_back({own.store->root(), std::move(own.oddities)});
  out.notes = std::move(own.notes);
  out.objects = own.objects;
  out.adapted = own.adapted;
  return out;
}

Opened as_written(Opened opened) {
  opened.plain = take_written(*opened.own);
  opened.own.reset();
  return opened;
}

Opened open_plain(std::unique_ptr<Store> store, const std::string& source, std::vector<Finding> damage) {
  Opened out;
  out.opening = store->opening();
  out.folders.push_back(store->root());
  out.damage.push_back({store->root(), std::move(damage)});
  note_choice(source, *store, out.notes);
  out.plain = std::move(store);
  return out;
}

}  // namespace mckpt::impl
