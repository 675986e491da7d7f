// A golden model as a folder on disk that rank 0 makes, opened by every rank as the program opens it.
#pragma once

#include <memory>
#include <optional>

#include "convert/jobs/chunk_jobs.h"
#include "core/base/text.h"
#include "io/store/store.h"
#include "runtime/comm/comm.h"
#include "tests/support/golden_config.h"
#include "tests/support/golden_folder.h"
#include "tests/support/job.h"
#include "tests/support/safetensors_text.h"
#include "tests/support/temp_folder.h"

namespace mckpt::impl {

// A scratch folder of all ranks. Collective; it is gone when rank 0's is.
class SharedFolder {
 public:
  SharedFolder() {
    if (world().rank() == 0) mine_.emplace();
    std::string path = mine_ ? mine_->path() : "";
    Gathered all = world().all_gather_v(std::as_bytes(std::span(path)));
    path_.assign(reinterpret_cast<const char*>(all.of(0).data()), all.of(0).size());
  }
  const std::string& path() const { return path_; }
  TempFolder* mine() { return mine_ ? &*mine_ : nullptr; }

 private:
  std::optional<TempFolder> mine_;
  std::string path_;
};

// A model of any configuration, with values that no two items of a tensor share.
inline void write_made(const std::string& config_text, const TempFolder& folder) {
  HfConfig config = read_hf_config(config_text);
  ModelMap map = ModelMap::promised(config.model, *config.family);
  std::vector<Shape> shapes = map.source_shapes();
  std::string header = "{", data;
  for (i32 t = 0; t < map.sources().size(); t++) {
    std::string shape = dims_to_string(shapes[static_cast<std::size_t>(t)].dims());
    i64 begin = std::ssize(data);
    for (i64 i = 0; i < shapes[static_cast<std::size_t>(t)].items(); i++) {
      u16 bits = static_cast<u16>(0x3000 + (i * 7 + t) % 0x1000);
      data += {static_cast<char>(bits & 255), static_cast<char>(bits >> 8)};
    }
    if (header.size() > 1) header += ',';
    header += safetensors_entry(map.sources()[t].name, "BF16", shape.substr(1, shape.size() - 2), begin,
                                std::ssize(data));
  }
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');
  folder.put("model.safetensors", safetensors_file(header, data));
  folder.put("config.json", config_text);
}

inline ModelMap map_of_store(const HfConfig& config, const Store& store) {
  SourceTable table;
  for (i32 t = 0; t < store.tensor_count(); t++)
    table.add({store.name(t), store.dims(t), store.dtype(t), true});
  return ModelMap(config.model, *config.family, std::move(table));
}

// The places of the tensors of a folder in its own files: exporting there must change nothing.
inline TensorPlaces places_in(const Store& store, const ModelMap& map) {
  TensorPlaces places;
  for (i32 t = 0; t < store.tensor_count(); t++) {
    ChunkData data = store.resolve(t, 0);
    places.tensors.push_back({data.file, data.offset, data.dtype, store.shape(t)});
  }
  for (const UnreadTensor& u : map.unread())
    if (u.of < 0) places.tensors[static_cast<std::size_t>(u.tensor)].file = -1;
  return places;
}

struct GoldenSource {
  explicit GoldenSource(const std::string& model) : name(model), config(golden_config(model)) {
    if (folder.mine()) write_golden(model, *folder.mine());
    open();
  }
  GoldenSource(const std::string& label, const std::string& config_text)
      : name(label), config(read_hf_config(config_text)) {
    if (folder.mine()) write_made(config_text, *folder.mine());
    open();
  }
  void open() {
    world().barrier();
    store = open_safetensors_folder(folder.path(), {});
    map = std::make_unique<ModelMap>(map_of_store(config, *store));
  }
  ~GoldenSource() { world().barrier(); }  // others still read

  std::string name;
  SharedFolder folder;
  HfConfig config;
  std::unique_ptr<Store> store;
  std::unique_ptr<ModelMap> map;
};

}  // namespace mckpt::impl
