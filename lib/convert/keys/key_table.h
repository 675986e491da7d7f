// KeyTable: every key of an fsdp_dtensor checkpoint of a model, with its global shape and, for any box of it,
// the Hugging Face items that lie there. One table serves both directions: import gathers along its runs,
// export scatters along them, verify compares along them.
//
//   key ...linear_fc1.weight_w [ffn, hidden]   box rows [4, 10)  -->  gate_proj items [4*hidden, 10*hidden)
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "core/base/name_hash.h"
#include "core/items/shape.h"
#include "mappings/model/run_setup.h"

namespace mckpt::impl {

enum class KeySplit;
class ModelMap;
struct Holding;
struct ItemRun;
struct ModelParameter;
struct Part;

struct CheckpointKey {
  std::string name;  // without what wrappers put in front: "decoder.layers.0.mlp.linear_fc1.weight_w"
  i32 parameter = 0;
  i64 first_row = 0;     // in the parameter, as a single rank has it
  Shape shape;           // of the whole
  bool by_cell = false;  // fused, cell after cell: which item lies where depends on how many cells wrote it
};

// The name without the sections and wrappers in front of it: "model.module.a.b" and "model.a.b" are "a.b".
// Nothing for a key of another section. Newer writers call the layers of MTP blocks "transformer_layer"; they
// get the older name.
std::optional<std::string> model_key(std::string_view name);

// "optimizer.state.module.module.module.<key>.<state>": the key without wrappers, and the dots that part the
// name. Nothing for a tensor that is no state.
struct StateName {
  std::string key;
  std::vector<i32> dots;
};
std::optional<StateName> state_name(std::string_view name);

class KeyTable {
 public:
  // How many cells wrote fused tensors, one after the other; 0: not known.
  struct Cells {
    i64 tp = 0, etp = 0;
  };
  using Has = std::function<bool(const std::string&)>;

  // The keys that Megatron-Bridge writes.
  KeyTable(const ModelMap& map, const RunSetup& setup, Cells cells);
  // The keys of a checkpoint that is there, whose fused parameters may be in parts or whole. `has` tells
  // whether it has a key of that name. Throws kUnaccounted that names parameters without a key,
  // kUnknownPartition where the number of cells is needed and not known.
  KeyTable(const ModelMap& map, const RunSetup& setup, Cells cells, const Has& has);
  ~KeyTable();

  const ModelMap& map() const { return map_; }
  // As a run on a single rank would hold them.
  const std::vector<ModelParameter>& parameters() const { return parameters_; }
  const ModelParameter& parameter(const CheckpointKey& key) const;
  i32 size() const { return static_cast<i32>(keys_.size()); }
  const CheckpointKey& operator[](i32 key) const { return keys_[key]; }
  i32 find(const std::string& name) const;  // -1: there is none

  // The items of a box of the key, in the box's own row-major order; the slot of a run is the index of the
  // tensor in map().sources(), or kPaddingSlot. Thread-safe. Throws kUnknownPartition for a box that no rank
  // of any grid holds.
  std::vector<ItemRun> runs(const CheckpointKey& key, std::span<const i64> offsets,
                            std::span<const i64> sizes) const;

 private:
  void add_whole(i32 parameter);
  void check_cells(i32 parameter) const;
  void add_parts(i32 parameter, KeySplit split);
  bool add_stored(i32 parameter, const Has& has);
  void index_names();
  i64 cells_of(const ModelParameter& p) const;
  const Holding& holding(i32 parameter, Part part) const;
  void append_rows(const CheckpointKey& key, Part part, i64 first_row, i64 rows,
                   std::vector<ItemRun>& out) const;

  const ModelMap& map_;
  RunSetup setup_;
  Cells cells_;
  std::vector<ModelParameter> parameters_;
  std::vector<CheckpointKey> keys_;
  NameMap<std::string_view, i32> by_name_;
  mutable std::mutex mutex_;
  // Of other cells, by what a single rank holds, which alike parameters share; and the cell.
  mutable std::map<std::tuple<const Holding*, i64, i64>, std::unique_ptr<const Holding>> of_cells_;
};

}  // namespace mckpt::impl
