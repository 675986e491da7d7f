// RankPlan: which rank of a Megatron run has which part of which parameter, in which file, where each rank
// saves what it holds at run time (--ckpt-format torch):
//
//   rank                 file                                  tensors
//   tp 1, stage 0, ep 0  mp_rank_01_000_000/model_optim_rng.pt  decoder.layers.0.mlp.linear_fc1.weight [2n, h], ...
//
// A rank's tensor is a chunk: a box of the parameter as one rank alone would have it, or of the ranks' parts
// one after the other where a parameter is fused (KeyTable). Tensors that several ranks have alike are in the
// file of each; the first is the original and the others are copies.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convert/jobs/stored_types.h"
#include "convert/keys/stored_chunks.h"
#include "core/base/int.h"
#include "core/fsdp/grid.h"
#include "io/torch/layout.h"
#include "mappings/model/run_setup.h"
#include "mappings/model/stages.h"

namespace mckpt::impl {

class KeyTable;
class PickleWriter;
struct OutputFile;

// A training run without Megatron-FSDP: its grid, its pipeline, the set-up of the model, and its types.
struct RankRun : StoredTypes {
  Grid grid;
  PipelineOptions pipeline;
  RunSetup run;
  int threads = 1;  // that plan
};

// The files of all ranks, and as a ChunkList their tensors, in the order of the files. All functions are
// const and thread-safe.
class RankPlan final : public ChunkList {
 public:
  // Writes the entries of a file's object that come before the model: pairs of a name and a value. `rank`:
  // the first of the ranks that save the file.
  using WriteFront = std::function<void(PickleWriter&, i64 rank)>;

  // pre: the table is made for the run, has fused parameters whole (RunSetup::whole), and outlives this.
  // `adjust` changes what the tables say of each rank's parameters. Throws kGridMisfit, kBadGrid, and what
  // TorchLayout throws.
  RankPlan(const KeyTable& keys, const RankRun& run, const Adjust& adjust, const WriteFront& front);

  i64 size() const override { return std::ssize(chunks_); }
  i32 key(i64 c) const override { return chunks_[c].key; }
  Box box(i64 c) const override;
  std::span<const i64> dims(i64 c) const override;
  DType dtype(i64 c) const override { return chunks_[c].dtype; }
  Place place(i64 c) const override;
  i32 tensor(i64 c) const override { return static_cast<i32>(c); }
  std::string name(i64 c) const override;  // "mp_rank_00/model.decoder.final_layernorm.weight"
  bool copy(i64 c) const override { return chunks_[c].copy; }
  // The name of the tensor in its section.
  std::string_view parameter(i64 c) const { return parameters_[chunks_[c].name]; }

  std::vector<OutputFile> files() const;
  i64 file_count() const { return std::ssize(files_); }
  const TorchLayout& layout(i64 file) const { return files_[file].layout; }

 private:
  struct File {
    std::string folder;
    TorchLayout layout;
  };
  struct Column {
    i32 key, file, at;  // `at`: its number in the file
    i32 section, name;  // of sections_, of parameters_
    i64 box;            // in numbers_: offsets, then sizes
    DType dtype;
    bool copy;
  };
  struct Held;
  class Builder;

  const KeyTable& keys_;
  std::vector<File> files_;
  std::vector<Column> chunks_;
  std::vector<i64> numbers_;
  std::vector<std::string> sections_, parameters_;  // names, each once
};

}  // namespace mckpt::impl
