// Compares a Hugging Face folder and a checkpoint with the model's own names, whichever of them is tested:
// both have the tensors of the model under the names of the folder.

#include "convert/compare/against.h"
#include "convert/compare/compare.h"
#include "convert/source/own_model.h"
#include "core/items/item_cast.h"
#include "io/file/folder.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

bool has_config(const Store& folder) {
  return Folder(folder.root(), folder.opening()).has_file("config.json");
}

OwnModel open_beside(std::unique_ptr<Store> checkpoint, const Store& folder, const Comparing& c) {
  OwnModelOptions how{.source = checkpoint->root(),
                      .accept = c.options.opening.accept,
                      .complete = false,
                      .threads = c.options.threads};
  if (c.options.opening.assets)
    how.assets = c.options.opening.assets;
  else if (has_config(folder))
    how.assets = folder.root();
  return open_own_model(std::move(checkpoint), how);
}

}  // namespace

bool is_own_beside_model(const Store& checkpoint, const Store& folder) {
  // The tensors of a single file are compared under the names that they have, unless the other side is a
  // model.
  bool of_files = !checkpoint.files().empty() && !checkpoint.files()[0].path.empty();
  return folder.format() == Format::kSafetensorsFolder && (of_files || has_config(folder)) &&
         format_family(checkpoint.format()) != FormatFamily::kSafetensors && has_own_names(checkpoint);
}

bool against_own_export(const Store& tested, std::unique_ptr<Store> source, const Comparing& c) {
  OwnModel own = open_beside(std::move(source), tested, c);
  c.oddities.push_back({own.store->root(), std::move(own.oddities)});
  Intended intended;
  intended.left_out = [&](std::string_view name) -> std::string {
    for (auto [copy, of] : own.copies)
      if (own.store->name(copy) == name) return "a copy of the tensor that the model ties it to";
    return "";
  };
  intended.type = [&](i64 t) {
    DType stored = own.store->dtype(t);
    i64 at = find_tensor(tested, own.store->name(t));
    return at >= 0 && is_castable(stored) && is_castable(tested.dtype(at)) ? tested.dtype(at) : stored;
  };
  c.report.compared_as = "each tensor of the folder with the one of that name in the checkpoint";
  bool as_asked = check_types_by_name(tested, *own.store, c);
  return against_names(tested, *own.store, nullptr, c, intended) && as_asked;
}

bool against_own_import(std::unique_ptr<Store> tested, const Store& source, const Comparing& c) {
  OwnModel own = open_beside(std::move(tested), source, c);
  c.oddities.push_back({own.store->root(), std::move(own.oddities)});
  c.report.compared_as = "each tensor of the checkpoint with the one of that name in the folder";
  std::unique_ptr<Store> written = take_written(own);
  bool as_asked = check_types_by_name(*written, source, c);
  return against_names(*written, source, nullptr, c) && as_asked;
}

}  // namespace mckpt::impl
