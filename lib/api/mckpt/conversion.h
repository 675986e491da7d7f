// mckpt::Conversion: plan, prove, run. Planning reads headers and makes a value that says what would be read and
// written; proving shows that every item of every tensor is written once; running writes under a hidden name and renames.
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

#include "mckpt/checkpoint.h"
#include "mckpt/observer.h"
#include "mckpt/plain_plans.h"
#include "mckpt/plans.h"

namespace mckpt {

// What is made of the tensors, counted from the planned moves. tensors_out = copied + fused + split + dequantized +
// invented + those that repeat another tensor of the result, of which `padded` and `changed` count some again.
struct Account {
  std::int64_t tensors_in = 0, tensors_out = 0;
  std::int64_t copied = 0;           // made of one tensor, which is used for no other
  std::int64_t fused = 0, split = 0;  // made of several; made of one that is used for others as well
  std::int64_t tied = 0;             // tensors that are a copy of another one, in the source or in the result
  std::int64_t padded = 0;           // have zeros that the source does not have
  std::int64_t unpadded = 0;         // tensors of the source whose padding is dropped
  std::int64_t changed = 0;          // have another type, or other values, than the source
  std::int64_t dropped = 0, dropped_objects = 0;  // tensors and objects of the source that are left out on purpose
  std::int64_t invented = 0;         // made of nothing, because their values are those of a rule
  std::int64_t dequantized = 0;      // values of one tensor, which the source has as codes and scales
};

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
  bool overwrite = false;       // replace an existing result, once the new one is complete
  bool resume = false;          // continue what an interrupted run of the same conversion left
  bool allow_overflow = false;  // publish although a cast made finite values infinite
  std::vector<std::string> card{};  // files that get a card of the result (mckpt/verify.h), which is read for it
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
MCKPT_API Conversion plan(const ToHf& what);
MCKPT_API Conversion plan(const Reshard& what, int threads = 1);
MCKPT_API Conversion plan(const ToRanks& what, int threads = 1);
MCKPT_API Conversion plan(const Relayer& what);
MCKPT_API Conversion plan(const ToSafetensors& what, int threads = 1);
MCKPT_API Conversion plan(const ToDcp& what, int threads = 1);
MCKPT_API Conversion plan(const ToHdf5& what, int threads = 1);
MCKPT_API Conversion plan(const FromHdf5& what);
MCKPT_API Conversion plan(const PtToSafetensors& what, int threads = 1);
MCKPT_API Conversion plan(const ToPt& what, int threads = 1);

}  // namespace mckpt
