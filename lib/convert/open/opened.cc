// The answers that do not depend on which of the four was opened.
#include "convert/open/opened.h"

#include "convert/open/checkpoint.h"
#include "convert/open/own_model.h"
#include "hf/adapter/adapted_store.h"
#include "hf/folder/assets.h"
#include "hf/folder/model_folder.h"
#include "hf/model.h"
#include "io/store/store.h"
#include "mappings/model/expand.h"

namespace mckpt::impl {

Opened::Opened() = default;
Opened::Opened(Opened&&) noexcept = default;
Opened& Opened::operator=(Opened&&) noexcept = default;
Opened::~Opened() = default;

const Store& Opened::store() const {
  if (table) return *table->store;
  if (own) return *own->store;
  return sharded ? sharded->store() : *plain;
}

const Store& Opened::on_disk() const { return sharded ? sharded->on_disk() : store(); }

const HfModel* Opened::model() const { return sharded ? &sharded->model() : table.get(); }

std::optional<SafetensorsOriginal> Opened::original() const {
  if (own) return own->original;
  if (folder) return own_original;
  return model() ? original_files(*model()) : std::nullopt;
}

SideFiles Opened::assets(std::string_view tensor_table) const {
  if (sharded) return plan_assets(sharded->assets_path(), tensor_table, opening);
  const ModelFolder* apart = own ? &own->folder : folder.get();
  if (!apart) {
    if (table->path.empty()) return {};
    SideFiles files = plan_assets(table->path, tensor_table, opening);
    if (adapted) amend(files, adapted->amended());
    return files;
  }
  SideFiles files = apart->files(opening);
  if (!tensor_table.empty()) files.texts.emplace(kTensorTableName, tensor_table);
  return files;
}

SideFiles Opened::assets_with_table() const {
  const HfModel& known = *model();
  return assets(tensor_table_json(known.map->sources(), known.expert_layout, known.map_text, original()));
}

}  // namespace mckpt::impl
