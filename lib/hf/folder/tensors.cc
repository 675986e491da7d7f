// Lists the tensors of a folder. Names and sizes are views of the store, of the list or of the index.
#include "hf/folder/tensors.h"

#include "core/base/error.h"
#include "hf/folder/assets.h"
#include "hf/quantized/dequantized_store.h"
#include "io/file/folder.h"
#include "io/json/json_file.h"
#include "io/safetensors/index.h"
#include "io/store/store.h"

namespace mckpt::impl {

FolderTensors::FolderTensors() = default;
FolderTensors::FolderTensors(FolderTensors&&) noexcept = default;
FolderTensors::~FolderTensors() = default;

SourceTable table_of(const Store& store) {
  SourceTable table;
  for (i64 t = 0; t < store.tensor_count(); t++)
    if (table.add({store.name(t), store.dims(t), store.dtype(t), true}) < 0)
      throw Error(Code::kUnaccounted, "a tensor is in the model twice").tensor(store.name(t));
  return table;
}

SourceTable table_of(const TensorTable& tensors) {
  SourceTable table;
  for (const TensorTable::Entry& e : tensors.tensors)
    if (table.add({e.name, e.dims, e.dtype, true}) < 0)
      throw Error(Code::kUnaccounted, "a tensor is in the list twice").tensor(e.name);
  return table;
}

// An index has names only: its tensors get their types and shapes from the family's tables.
SourceTable table_of(const SafetensorsIndex& index) {
  SourceTable table;
  for (const SafetensorsIndex::Entry& entry : index.weight_map)
    table.add({entry.tensor, {}, DType::kBF16, false});
  return table;
}

bool has_safetensors(const Folder& folder, std::string& index) {
  bool any = false;
  for (const FolderEntry& e : folder.entries()) {
    if (e.folder) continue;
    any |= e.name.ends_with(".safetensors");
    if (e.name.ends_with(".safetensors.index.json")) index = e.name;
  }
  return any;
}

FolderTensors tensors_of_folder(const std::string& path, const OpenOptions& opening) {
  Folder folder(path, opening);
  FolderTensors out;
  std::string index;
  if (has_safetensors(folder, index)) {
    out.store = dequantized(open_safetensors_folder(path, opening));
    out.table = table_of(*out.store);
  } else if (std::string text = tensor_table_text(folder); !text.empty()) {
    out.list = std::make_unique<TensorTable>(parse_tensor_table(text));
    out.table = table_of(*out.list);
  } else if (!index.empty()) {
    out.index = with_file(cat(path, "/", index), [&] {
      return std::make_unique<SafetensorsIndex>(parse_safetensors_index(json_text(folder.open_file(index))));
    });
    out.table = table_of(*out.index);
  }
  return out;
}

}  // namespace mckpt::impl
