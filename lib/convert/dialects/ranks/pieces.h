// The files of a Megatron run's ranks (mp_rank_*/model_optim_rng.pt) as the tensors of an fsdp_dtensor
// checkpoint. The file of a rank has the tensors that the rank has in memory: it counts layers from 0 on its
// stage, and experts from 0 on the rank, and has the part of each parameter that belongs to its
// tensor-parallel cell. The table of the model says which part this is:
//
//   mp_rank_01_000/model.decoder.layers.0.mlp.linear_fc1.weight [2n, h]
//       -->  model.module.decoder.layers.0.mlp.linear_fc1.weight_w   rows n to 2n-1     the first n rows
//            model.module.decoder.layers.0.mlp.linear_fc1.weight_v   rows n to 2n-1     the other n rows
//
// Nothing is copied: a tensor of the view is the pieces that the ranks have of it. A box that several ranks
// have is taken from the first of them, and the copies are compared.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "convert/facts/translated_run.h"
#include "core/fsdp/grid.h"

namespace mckpt::impl {

class ModelMap;
class Store;
struct RunSizes;
struct RunSetup;

// Says which data are read beside the weights, and whether copies are compared.
struct RankReading {
  bool copies = false;  // also copies with equal checksums are read and compared
  bool states = false;  // the states of an optimizer that is not distributed (convert/own/classic_states.h)
  bool apart = false;   // the states of a distributed optimizer, which keep their names
  bool compare = true;  // false: headers alone are read, and what ranks have alike is not compared
};

struct RankPieces : TranslatedRun {
  Grid grid;                        // of the run that wrote the files; dp is not known
  std::vector<std::string> states;  // tensors of the optimizer, which the view does not have
};

// Takes the store into the result. The map may be discarded afterwards. `setup` gets the spelling and the
// rows of the vocabulary that the files have. `run`: of the args, or as the user says it. Throws
// kUnknownPartition if the grid is not known; kContradiction if args, names of folders and layers do not
// agree; kUnaccounted for parameters that a file lacks and tensors that the model does not have; kNumberGap
// if the args say other numbers of layers, MTP layers or experts than the tensors; kSourceShape; kBadShards
// for copies that differ; kNotHeld for states whose parameters are not known.
RankPieces rank_pieces(std::unique_ptr<Store> store, const ModelMap& map, RunSetup& setup,
                       const RunSizes& run, RankReading reading);

}  // namespace mckpt::impl
