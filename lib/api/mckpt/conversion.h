// mckpt::Conversion: plan, prove, run. Planning reads headers and makes a value that says what would be read
// and written; proving shows that every item of every tensor is written once; running writes under a hidden
// name and renames.
//
//   mckpt::Conversion c = mckpt::plan(mckpt::ToFsdp{.source = "Qwen3-0.6B", .target = "ckpt", .grid = {.tp = 2}});
//   c.prove();          throws if an item would be lost, doubled or invented. Nothing is written so far
//   c.account();        311 tensors in, 227 out: 171 copied, 56 fused
//   c.run();            -> ckpt/release
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mckpt/account.h"
#include "mckpt/checkpoint.h"
#include "mckpt/observer.h"
#include "mckpt/plain_plans.h"
#include "mckpt/plans.h"

namespace mckpt {

// A data file of the result.
struct OutputFile {
  std::string name{};  // relative to the result
  std::int64_t bytes = 0;
};

// The parallel sizes of the training run whose checkpoint the result is, with those that planning chose.
struct ChosenGrid {
  std::int64_t tp = 1, cp = 1, ep = 1, etp = 1, pp = 1;
  std::int64_t dp = 1, hsdp = 1;  // dp: without cp, with hsdp
  std::int64_t ranks = 1;         // pp * tp * cp * dp
};

struct RunOptions {
  int threads = 1;
  std::int64_t max_memory = std::int64_t{256} << 20;  // bytes, for the buffers of all threads together
  bool sync = true;                                   // wait until the result is on the disk
  // Replace an existing result, once the new one is complete, and what another conversion left unfinished
  bool overwrite = false;
  // What an interrupted run of the same conversion left is continued in any case; with `resume` also where
  // that run was to replace a result. Not of one file (kUsage)
  bool resume = false;
  bool allow_overflow = false;  // publish although a cast made finite values infinite
  // Files that get a card of the result (mckpt/verify.h), which is read for it
  std::vector<std::string> card{};
  std::string command{};            // for the card: what was asked for
};

// The numbers of a finished run.
struct RunReport {
  std::string output{};  // the folder or file that was made
  std::int64_t bytes = 0, bytes_read = 0, bytes_written = 0;
  std::int64_t rounded_norms = 0;  // items that were rounded because norms are stored less one
  std::int64_t became_infinite = 0, became_zero = 0;  // items, by casts
  std::vector<std::string> overflowed{};              // tensors with items that became infinite
  std::vector<Note> notes{};
};

// One planned conversion. Movable. A conversion belongs to one thread; its work uses as many as it is given.
class MCKPT_API Conversion {
 public:
  Conversion(Conversion&&) noexcept;
  Conversion& operator=(Conversion&&) noexcept;
  ~Conversion();

  const std::string& path() const;  // of the result
  std::int64_t bytes() const;       // of the result
  std::vector<OutputFile> outputs() const;
  std::optional<ChosenGrid> grid() const;  // of ToFsdp, ToMcore, Reshard and ToRanks
  std::vector<std::string> sources() const;
  std::vector<Note> notes() const;        // of planning
  std::vector<Finding> findings() const;  // about the sources: odd, but nothing is lost

  // Plans every task and compares the moves with the tensors of both sides; reads no data. Throws Error that
  // names the tensor. The account is known from here on.
  const Account& prove(int threads = 1, Observer* observer = nullptr);
  const Account& account() const;  // pre: prove() was called

  // Throws, before anything is written, if run() is known to fail: the result exists, too little room.
  void check(const RunOptions& options = {}) const;
  // Carries the conversion out and publishes the result, once. Proves first, unless prove() was called;
  // always checks. After an Error there is no result, unless the message says that it was published.
  RunReport run(const RunOptions& options = {}, Observer* observer = nullptr);

 private:
  struct State;
  friend struct ConversionAccess;
  explicit Conversion(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Each reads headers and writes nothing. `threads` may plan at once. Throws for whatever cannot be converted.
MCKPT_API Conversion plan(const ToFsdp& what, int threads = 1);
MCKPT_API Conversion plan(const ToMcore& what, int threads = 1);
MCKPT_API Conversion plan(const ToHf& what, int threads = 1);
MCKPT_API Conversion plan(const Reshard& what, int threads = 1);
MCKPT_API Conversion plan(const ToRanks& what, int threads = 1);
MCKPT_API Conversion plan(const Relayer& what);
MCKPT_API Conversion plan(const ToSafetensors& what, int threads = 1);
MCKPT_API Conversion plan(const ToDcp& what, int threads = 1);
MCKPT_API Conversion plan(const Dequantize& what, int threads = 1);
MCKPT_API Conversion plan(const Quantize& what, int threads = 1);
MCKPT_API Conversion plan(const ToHdf5& what, int threads = 1);
MCKPT_API Conversion plan(const FromHdf5& what);
MCKPT_API Conversion plan(const PtToSafetensors& what, int threads = 1);
MCKPT_API Conversion plan(const ToPt& what, int threads = 1);

}  // namespace mckpt
