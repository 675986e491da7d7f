// The files of one group of ranks, joined tensor by tensor:
//
//   model_world_size_3_rank_0.pt  w: rows 0-23 of 71    bias: 4 items    rng: 16 bytes
//   model_world_size_3_rank_1.pt  w: rows 24-47         bias: the same   rng: others
//   model_world_size_3_rank_2.pt  w: rows 48-70         bias: the same   rng: others
//     -> w [71, ...] of three chunks; bias, once; rank_0:rng, rank_1:rng, rank_2:rng
//
// Flat pieces (io/torch/flat_pieces.h) become tensors of one dimension, and their flat parameters none.
//
// Pieces that do not fit together, copies that differ and files that are not what their name says become
// findings: nothing is guessed, and whole tensors are never put one after the other.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "io/ranks/copies.h"
#include "io/saves/rank_saves.h"
#include "io/torch/flat_pieces.h"
#include "io/torch/placing.h"
#include "io/torch/store.h"
#include "io/torch/table/sharding.h"

namespace mckpt::impl {

struct OpenedTorchFile;
struct RankName;

// Used once: files are added in the order of their ranks, files of other models are left out, then joined.
class RankGroup {
 public:
  // `prefix`: before the names of the tensors. `model`: copies that differ are damage, as they are not in
  // states of ranks (random numbers). `saves` is told of numbers that do not belong to one save.
  RankGroup(TorchStore& store, const Folder& folder, RankSaves& saves, std::string prefix, bool model)
      : store_(store), copies_(store, folder), saves_(saves), prefix_(std::move(prefix)), model_(model) {}

  // Takes over a file. pre: it could be read.
  void add(OpenedTorchFile& file, const RankName& name);
  // Leaves out files of another model than most files are of, and says so of each. pre: all files were added.
  void leave_out_others();
  // Adds the tensors and the findings to the store. `whole`: all files were added; if not, a finding of the
  // caller says which is missing, and tensors have holes. Throws kUnsupportedTorchFile for flat parameters
  // without pieces.
  void join(bool whole);

  // The number of ranks that the files themselves know of, if they were not left out; 0 if they do not say.
  i64 least_ranks() const;

 private:
  // A row of a rank's file.
  struct Holder {
    i64 rank;
    i32 file;
    i64 row;
  };
  struct Name {
    std::string name;
    std::vector<Holder> holders;
  };
  const TorchTable& table(const Holder& h) const { return store_.table(h.file); }
  const TorchSharding* sharding(const Holder& h) const { return table(h).sharding(h.row); }

  bool is_described_alike(const Holder& a, const Holder& b);
  std::vector<i64> unlike_ranks(i64 reference);
  i64 check_writer(const OpenedTorchFile& file, const RankName& name, const TorchTable& table);
  void check_saved_name(const OpenedTorchFile& file, const RankName& name);
  bool alike(const TorchSharding& a, const TorchSharding& b);
  bool same_boxes(const TorchBoxes& a, const TorchBoxes& b);
  bool same_mesh(const TorchMesh& a, const TorchMesh& b);
  std::string unlike_rank(const Name& n);
  void join_distributed(const Name& n);
  std::string place_shards(const Name& n, std::span<TorchPiece> pieces) const;
  std::string doubled(const TorchSharding& layout, std::span<TorchPiece> pieces) const;
  Name with_items(const Name& n) const;
  Name in_mesh(const Name& n) const;
  bool is_flat_parameter(const Name& n) const;
  void add_flat_parameter(const Name& n);
  bool join_flat(const Name& n);
  void conclude_flat();
  void add_pieces(const Name& n, std::span<const i64> dims, std::span<const TorchPiece> pieces);
  std::string fault_of(const Name& n, std::span<const TorchPiece> pieces);
  void compare_counts(const Name& n);
  void join_plain(const Name& n);
  void add_copies(const Name& n);
  void add_finding(const std::string& tensor, std::string message);
  void note_uncompared();

  TorchStore& store_;
  TorchCopies copies_;
  RankSaves& saves_;
  std::string prefix_;
  bool model_;
  i64 ranks_ = 0;
  // A file, and the number of ranks that it knows of; 0: it does not say.
  struct Part {
    i64 rank;
    i32 file;
    i64 least_ranks;
  };
  std::vector<Part> files_;
  bool whole_ = true;          // all files of the group were added, and used
  bool distributed_ = false;   // some tensor is in pieces
  bool unsaid_ranks_ = false;  // a file does not say its rank
  FlatUnits units_;
  std::vector<Name> names_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::map<std::pair<const TorchBoxes*, const TorchBoxes*>, bool> same_boxes_;
  std::map<std::pair<const TorchMesh*, const TorchMesh*>, bool> same_mesh_;  // a file's tensors share one
  std::vector<std::string> uncompared_;  // tensors with copies of which nothing is known
};

}  // namespace mckpt::impl
