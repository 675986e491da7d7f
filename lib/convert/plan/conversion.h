// Conversion: everything that a conversion reads and writes, as a value. Planning makes it of headers and
// options alone: nothing is written, and whatever cannot be converted is refused there. A conversion can then
// be shown, proved, run, and resumed by a later process that plans the same.
//
//   plan(Opened, target)  -->  Conversion  --prove()-->  account  --run()-->  result
//
//   reads     opened, store             what is open, and the store whose files the job reads
//   writes    path: files               tensors, moved by the tasks of the job
//                   target              its frame: headers, objects, metadata, every byte that is not of a tensor
//                   beside              copies of other files, and texts
//             tracker                   the name of the iteration, if the result is one of a training run
//   reports   account, notes, details
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "convert/jobs/proof.h"
#include "convert/jobs/tensor_account.h"
#include "convert/output/fsdp_folder.h"
#include "convert/plan/behind_view.h"
#include "core/base/int.h"
#include "core/base/notes.h"
#include "core/fsdp/grid.h"
#include "io/file/open_options.h"
#include "io/output/output_files.h"
#include "io/store/soundness.h"

namespace mckpt::impl {

class CopyJob;
class ReadSums;
class Store;
class Target;
struct Opened;

// The part of a conversion that its target decides (convert/plan/target.h).
struct Planned {
  Planned();
  Planned(Planned&&) noexcept;
  Planned& operator=(Planned&&) noexcept;
  ~Planned();

  std::string path;
  bool single_file = false;  // the result is the file `path`; else it is a folder
  std::vector<OutputFile> files;
  i64 bytes = 0;  // of the result, for reports
  FsdpFolder::Beside beside;
  std::string format, extent;  // in words: "fsdp_dtensor", "4 ranks (tp=2 ...), 53 chunks, 72.5 KiB" or ""
  std::optional<Tracker> tracker;
  std::optional<Grid> grid;  // of the training run whose checkpoint the result is, if it is chosen
  std::string identity;  // differs for another source, result or version: compared when a result is resumed

  std::unique_ptr<CopyJob> job;
  // Every rank has tasks of its own, such as the tensors in its memory. False: the ranks share the tasks.
  bool job_of_rank = false;
  // The job of all ranks together that prove() plans, if that is not `job`; else null.
  std::unique_ptr<CopyJob> proved_job;
  ProofInput proof;
  bool of_files = false;                 // the proof and the account count whole files, and not tensors
  std::optional<BehindView> behind;      // if the job's store is a view that decodes tensors
  const AdaptedStore* merged = nullptr;  // if it is one of a base with an adapter in it
  i64 shared_tensors = 0;                // tensors that share storage in the source, and are written in full
  i64 dropped_objects = 0;  // objects of the source that are left out, or have no place in the result
  std::vector<Oddities> oddities;
  Notes notes;    // of opening the source and planning
  Notes details;  // about the result: reports show them behind the account
  Notes outcome;  // what publishing changes besides the result; shown when it is published, or would be
};

// One planned conversion. Movable, not copyable; job and proof refer to `opened` and `target`. Every rank
// plans the same conversion, except the job of a rank (job_of_rank) and what rank 0 alone compares.
struct Conversion : Planned {
  Conversion();
  Conversion(Conversion&&) noexcept;
  ~Conversion();

  std::unique_ptr<Opened> opened;  // null: the model is in memory
  std::unique_ptr<Target> target;  // keeps what job and proof refer to, and writes the frame

  std::vector<std::string> sources;      // folders and files that are read, as the user named them
  OpenOptions opening;                   // how they are opened
  const Store* store = nullptr;          // whose files the job reads; null: it reads memory
  std::unique_ptr<ReadSums> sums;        // checksums of the bytes that are read; null: the source has none
  Account account;                       // set by prove()
  std::optional<TensorAccount> tensors;  // set by prove() if it is asked for
};

// Sets the files of the result, and its size.
void set_files(Planned& planned, std::vector<OutputFile> files);

// Counts the tensors of the store among these that share storage there, and names them in the details.
void note_shared(Planned& planned, const Store& store, const std::vector<i64>& tensors);

// Makes the files part of the result; folders that are left out become a warning.
void add_beside(Planned& planned, FsdpFolder::Beside beside);

// Plans every task with `threads` threads and sets the account; with `by_tensor` also that tensor by tensor.
// `stop`: asked before each task; true ends the proof. Throws kNotTiled, kUnproved, kInterrupted, what tasks
// throw.
void prove(Conversion& conversion, int threads, bool by_tensor = false, std::function<bool()> stop = {});

}  // namespace mckpt::impl
