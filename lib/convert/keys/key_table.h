// KeyTable: every key of an fsdp_dtensor checkpoint of a model, with its global shape and, for any box of it,
// the Hugging Face items that are stored there. One table serves both directions: import gathers along its
// runs, export scatters along them, verify compares along them.
//
//   key ...linear_fc1.weight_w [ffn, hidden]   box rows [4, 10)  -->  gate_proj items [4*hidden, 10*hidden)
//
// A fused parameter is stored in one of two ways, and the table knows which:
//
//   in pieces   weight_w, weight_v                                  row r is the same, whatever the grid was
//   whole       weight = [gate 0-3 | up 0-3 | gate 4-7 | up 4-7]    what a row is depends on the number of cells
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

// One key. The key covers rows [first_row, first_row + shape[0]) of its parameter, as a training run on one
// rank has it.
struct CheckpointKey {
  std::string name;  // without the prefixes of wrappers: "decoder.layers.0.mlp.linear_fc1.weight_w"
  i32 parameter = 0;
  i64 first_row = 0;     // in the parameter, as one rank has it
  Shape shape;           // of the whole tensor of the key
  bool by_cell = false;  // fused, cell after cell: the place of an item depends on how many cells wrote it
};

// The table of one model and one way to write it. pre: the map outlives the table. After construction all
// functions are const and thread-safe; runs() computes what cells of larger grids hold on first use, and
// keeps it.
class KeyTable {
 public:
  // How many tensor-parallel cells wrote fused tensors, one after the other; 0: not known.
  struct Cells {
    i64 tp = 0, etp = 0;
  };
  using Has = std::function<bool(const std::string&)>;

  // The keys that Megatron-Bridge writes: fused parameters of a family's table in pieces. Throws
  // kUnknownPartition.
  KeyTable(const ModelMap& map, const RunSetup& setup, Cells cells);
  // The keys of an existing checkpoint, whose fused parameters may be in pieces or whole. `has` returns
  // whether the checkpoint has a key of that name, `one_cell` whether that key has its items as one cell
  // would store them, whatever `cells` says (empty: no key has). Throws kUnaccounted with the names of
  // parameters without a key, kUnknownPartition if the number of cells is needed and not known.
  KeyTable(const ModelMap& map, const RunSetup& setup, Cells cells, const Has& has, const Has& one_cell = {});
  // The keys under which every parameter has the parts of `split_of`, or is whole, with its parts one after
  // the other: no item's place depends on the number of cells.
  using SplitOf = KeySplit (*)(const ModelParameter&);
  KeyTable(const ModelMap& map, const RunSetup& setup, SplitOf split_of);
  ~KeyTable();

  const ModelMap& map() const { return map_; }
  // The parameters as one rank alone would hold them, in the order of the model.
  const std::vector<ModelParameter>& parameters() const { return parameters_; }
  const ModelParameter& parameter(const CheckpointKey& key) const;
  i32 size() const { return static_cast<i32>(keys_.size()); }
  const CheckpointKey& operator[](i32 key) const { return keys_[key]; }
  i32 find(const std::string& name) const;  // -1: there is none
  i32 at(const std::string& name) const;    // throws kInternal: a rank has no other keys than its model
  // The keys of a parameter, in the order of its rows.
  std::span<const CheckpointKey> keys_of(i32 parameter) const;
  // The key that stores the same items in the same order as a key of another table of the model; -1: there is
  // none.
  i32 find_alike(const CheckpointKey& other) const;

  // The items of a box of the key, in the box's own row-major order; the slot of a run is the index of the
  // tensor in map().sources(), copy_of() it, or kPaddingSlot. Thread-safe. Throws kUnknownPartition unless
  // the box is whole rows, or rows of one cell's columns.
  std::vector<ItemRun> runs(const CheckpointKey& key, std::span<const i64> offsets,
                            std::span<const i64> sizes) const;

 private:
  void add_whole(i32 parameter, bool one_cell = false);
  void check_cells(i32 parameter) const;
  void add_parts(i32 parameter, KeySplit split);
  bool add_stored(i32 parameter, const Has& has, const Has& one_cell);
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
  // The holdings of cells, by the holding of the whole parameter (which parameters that are alike share), the
  // number of cells, and the cell.
  mutable std::map<std::tuple<const Holding*, i64, i64>, std::unique_ptr<const Holding>> of_cells_;
};

}  // namespace mckpt::impl
