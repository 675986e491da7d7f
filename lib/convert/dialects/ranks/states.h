// RankStates: the optimizer states that the ranks of a Megatron-FSDP run wrote, each rank for itself with
// torch.save, as tensors of an fsdp_dtensor checkpoint. A rank has a stretch of each parameter's items, as a
// plain local tensor that records neither where it begins nor that it is a part:
//
//   optim_world_size_3_rank_0.pt   optimizer.state.<param>.linear_fc1.weight.exp_avg [16]    items [0, 16) of 40
//   optim_world_size_3_rank_1.pt                                                     [16]    items [16, 32)
//   optim_world_size_3_rank_2.pt                                                     [8]     items [32, 40)
//
//   --cut where the *parameter* is split, at 20-->   ..._w: rows of ranks 0 and 1   ..._v: of ranks 1 and 2
//
// Where a stretch begins follows from what the ranks before it hold, as it does when a real run saves. Only
// the headers of the files are read; the data are read by whatever uses the store.
#pragma once

#include <deque>

#include "core/base/int.h"
#include "core/base/name_hash.h"
#include "io/store/store.h"
#include "mappings/model/run_setup.h"

namespace mckpt::impl {

class Error;
class ModelMap;
class Shape;
class TorchTable;
struct Grid;
struct ModelConfig;
struct OpenedTorchFile;
struct RunFacts;

// The items of a parameter that one rank holds: [begin, end) of its local order.
struct RankStretch {
  i64 begin = 0, end = 0;
  bool replica = false;  // a rank of an earlier instance holds the same items
  friend bool operator==(const RankStretch&, const RankStretch&) = default;
};

// The stretch of each rank in a parameter of `whole` items. held[d] is the number of items of the d-th of the
// ranks that share the parameter's buffer; the `hsdp` instances of the buffer are cut further or are
// replicas. Nothing if numbers do not add up: {16, 16, 8} of 40 is [0, 16) [16, 32) [32, 40); {16, 16} none.
std::optional<std::vector<RankStretch>> stretches_of(std::span<const i64> held, i64 whole, i64 hsdp);

// Whether a tensor of these sizes can be a rank's piece of a parameter: rows of it, or the items of rows in
// one dimension. A parameter without items has only pieces without items.
bool is_made_of_rows(std::span<const i64> piece, const Shape& parameter);

// A store of the states. It keeps the files open and refers to no argument after construction; const
// functions are thread-safe.
class RankStates final : public Store {
 public:
  // `grid`: tp, etp, ep and hsdp of the run that wrote the files; its other sizes follow from the number of
  // files. `adjust` decides which parameters are stored in parts. Throws kShardMissing unless there is a file
  // of each rank, kUnaccounted for states of no parameter, kCounterpart with the parameter, its global and
  // its local shape if the pieces do not make up the whole, kBadSplit if the parts of the whole do not
  // divide.
  RankStates(const std::string& folder, OpenOptions opening, const ModelMap& map, const RunSetup& setup,
             Grid grid, const Adjust& adjust);
  ~RankStates() override;

  // Names of everything in the files that has no place in an fsdp_dtensor checkpoint.
  std::vector<std::string> not_taken() const;
  // The facts in the file of rank 0; all ranks save the same facts.
  RunFacts facts() const;

  i64 tensor_count() const override { return std::ssize(tensors_); }
  std::string_view name(i64 t) const override { return at(t).name; }
  DType dtype(i64 t) const override { return at(t).dtype; }
  std::span<const i64> dims(i64 t) const override { return at(t).dims; }
  i64 chunk_count(i64 t) const override { return std::ssize(at(t).pieces); }
  Chunk chunk(i64 t, i64 index) const override;
  ChunkData resolve(i64 t, i64 index) const override;

 private:
  struct Portion {
    i32 file;
    bool replica;
    i64 row;         // of the file's table
    i64 first_item;  // of the row's items, the first that is in the box
    std::vector<i64> offsets, sizes;
  };
  struct Tensor {
    std::string name;
    DType dtype;
    std::vector<i64> dims;
    std::deque<Portion> pieces;
  };
  struct Held {
    i64 place, rank;  // among the ranks that share the buffer, and in the world
    i32 file;
    i64 row;
  };
  // One state of one tensor-parallel part of a parameter, with the ranks that hold pieces of it.
  struct State {
    const std::vector<ModelParameter>* parameters;
    i32 parameter;
    std::string prefix, field;  // around the parameter's name
    std::vector<Held> held;

    const ModelParameter& of() const;
  };
  class Gathering;

  const Tensor& at(i64 t) const { return tensors_[t]; }
  const TorchTable& table(i32 file) const;
  void open(const std::string& folder);
  i64 check_ranks() const;
  i64 items_of(const State& s, const Held& h) const;
  void place(const State& s, i64 sharers, i64 hsdp, const ModelConfig& model);
  void add_copies(const State& s, const ModelConfig& model);
  Tensor& tensor(std::string name, DType dtype, std::span<const i64> dims);
  Error refusal(const State& s, const Held& h, const char* what) const;

  std::vector<OpenedTorchFile> opened_;
  std::deque<Tensor> tensors_;
  NameMap<std::string, i64> by_name_;
};

}  // namespace mckpt::impl
