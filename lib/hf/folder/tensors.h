// The tensors of a Hugging Face folder without its model: names, types and shapes, from the headers of the
// weights, from mckpt's list, or from the index, in this order. An index has names only.
#pragma once

#include <memory>
#include <string>

#include "mappings/model/source_table.h"

namespace mckpt::impl {

class Folder;
class Store;
struct OpenOptions;
struct SafetensorsIndex;
struct TensorTable;

// Tables of source tensors, which refer to what they are made of.
SourceTable table_of(const Store& store);
SourceTable table_of(const TensorTable& tensors);
SourceTable table_of(const SafetensorsIndex& index);

// The facts about a folder's tensors, and the table that refers to them.
struct FolderTensors {
  FolderTensors();
  FolderTensors(FolderTensors&&) noexcept;
  ~FolderTensors();

  std::unique_ptr<Store> store;
  std::unique_ptr<TensorTable> list;
  std::unique_ptr<SafetensorsIndex> index;
  SourceTable table;  // empty: the folder says nothing of its tensors
};

// Throws what opening the files throws; damaged files are not refused.
FolderTensors tensors_of_folder(const std::string& path, const OpenOptions& opening);

// Whether the folder has safetensors files; sets the name of the index, if there is one.
bool has_safetensors(const Folder& folder, std::string& index);

}  // namespace mckpt::impl
