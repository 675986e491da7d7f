// Notes and warnings about a model, which people read before anything is done with it.
#include "core/base/error_code.h"
#include "core/base/notes.h"
#include "core/base/text.h"
#include "core/items/dtype.h"
#include "hf/adapter/adapted_store.h"
#include "hf/folder/assets.h"
#include "hf/folder/front_of_names.h"
#include "hf/model.h"
#include "hf/quantized/dequantized_store.h"
#include "io/file/folder.h"
#include "io/store/finding.h"
#include "io/store/open/adapter_base.h"
#include "io/store/store.h"
#include "mappings/map_file/rows.h"
#include "mappings/model/expand.h"
#include "mappings/model/source_table.h"

namespace mckpt::impl {
namespace {

void add_notes(Notes& notes, const AdaptedStore& view) {
  notes.note(cat("the weights are those with an adapter in them: ", view.text()));
  for (const std::string& text : view.notes()) notes.note(text);
  for (const Finding& f : view.findings())
    if (f.warning && f.code == Code::kContradiction) notes.warn(f.message);
}

// Whether an adapter lies in the folder of a model that has all its weights.
bool has_adapter_beside(const HfModel& model) {
  if (!model.store || adapted_view(*model.store) || !is_folder(model.path, model.opening)) return false;
  const Folder folder(model.path, model.opening);
  return folder.has_file(kAdapterConfig) &&
         (folder.has_file("adapter_model.safetensors") || folder.has_file("adapter_model.bin"));
}

}  // namespace

std::string map_warning(const HfModel& model) {
  if (model.map_over.empty()) return "";
  return cat(kMapName, " of ", escaped(model.path, 4096), " replaces rows of mckpt's own table of ",
             model.map_over,
             ": it decides where every weight goes; to read the folder by that table, remove the file");
}

Notes notes_of(const HfModel& model) {
  Notes notes;
  if (const AdaptedStore* view = model.store ? adapted_view(*model.store) : nullptr) add_notes(notes, *view);
  const DequantizedStore* view = model.store ? dequantized_view(*model.store) : nullptr;
  if (view && !view->decodes())
    notes.note(cat("no weight is quantised; left out are ", quantized_text(*view)));
  else if (view)
    notes.note(cat("the weights are quantised (", quantized_text(*view), ") and read as ",
                   dtype_name(view->values())));
  else if (!model.config.quantized.empty())
    notes.warn(cat(model.config.quantized, "; shapes and sizes are those of the model before quantisation"));
  if (const std::string warning = map_warning(model); !warning.empty()) notes.warn(warning);
  for (const std::string& doubt : model.config.doubts) notes.warn(doubt);
  if (!model.fronted.empty()) notes.note(fronted_text({{"the files", model.fronted}}));
  if (has_adapter_beside(model))
    notes.warn(
        "the folder has an adapter beside the whole model, which is not read: transformers with PEFT loads the model with it; move one of them into a folder of its own, and give the model as `base` to have the adapter in it");
  if (model.own)
    for (const std::string& text : model.own->notes()) notes.note(text);
  for (const std::string& text : model.map->notes()) notes.note(text);
  const SourceTable& sources = model.map->sources();
  for (const UnreadTensor& u : model.map->unread()) {
    std::string copy = u.of < 0 ? "" : cat("is a copy of ", escaped(sources[u.of].name), " and ");
    notes.note(cat(escaped(sources[u.tensor].name), " ", copy, "is not read: ", u.reason));
  }
  return notes;
}

}  // namespace mckpt::impl
