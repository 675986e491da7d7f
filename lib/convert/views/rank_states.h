// RankStates: the optimizer states that the ranks of a Megatron-FSDP run wrote each for itself with
// torch.save, as tensors of an fsdp_dtensor checkpoint. A rank has a stretch of each parameter's items, as a
// plain local tensor that says neither where it begins nor that it is a part:
//
//   optim_world_size_3_rank_0.pt   optimizer.state.<param>.linear_fc1.weight.exp_avg [16]  items [0, 16) of
//   40 optim_world_size_3_rank_1.pt                                                     [16]        [16, 32)
//   optim_world_size_3_rank_2.pt                                                     [8]         [32, 40)
//
//   --cut where the *parameter* is split, at 20-->   ..._w: rows of ranks 0 and 1   ..._v: of ranks 1 and 2
//
// Where a stretch begins follows from what the ranks before it hold, as it does when a real run saves.
#pragma once

#include <deque>

#include "core/base/int.h"
#include "core/base/name_hash.h"
#include "io/store/store.h"
#include "mappings/model/run_setup.h"

namespace mckpt::impl {

class Error;
class ModelMap;
class PickleValue;
class TorchTable;
struct Grid;
struct ModelConfig;
struct OpenedTorchFile;

struct RankStretch {
  i64 begin = 0, end = 0;
  bool replica = false;  // an earlier rank holds the same
  friend bool operator==(const RankStretch&, const RankStretch&) = default;
};

// Where the items of each rank lie in a parameter of `whole` items; held[d] is what the d-th rank of those
// that share its buffer has. Over `hsdp` instances they are cut or repeated. Nothing when they do not add up.
std::optional<std::vector<RankStretch>> stretches_of(std::span<const i64> held, i64 whole, i64 hsdp);

class RankStates final : public Store {
 public:
  // `grid`: tp, etp, ep and hsdp of the run that wrote the files; its other sizes follow from their number.
  // `adjust` says which parameters are stored in parts. Throws kShardMissing without a file of each rank,
  // kUnaccounted for states of no parameter, kCounterpart that names the parameter, its global and the local
  // shape where pieces do not make the whole, kBadSplit where the whole does not divide.
  RankStates(const std::string& folder, const ModelMap& map, const RunSetup& setup, Grid grid,
             const Adjust& adjust);
  ~RankStates() override;

  // Names of what else the files hold, and has no place in an fsdp_dtensor checkpoint.
  std::vector<std::string> not_taken() const;
  // Objects of the run, which all ranks have alike: those of rank 0.
  void each_run_object(const std::function<void(std::string name, PickleValue value)>& take) const;

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
    i64 first_item;  // of the row that lies in the box
    std::vector<i64> offsets, sizes;
  };
  struct Tensor {
    std::string name;
    DType dtype;
    std::vector<i64> dims;
    std::deque<Portion> pieces;
  };
  struct Held {
    i64 place, rank;  // among those that share a buffer, and in the world
    i32 file;
    i64 row;
  };
  // One state of one parameter, as the ranks with one part of it have it.
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
