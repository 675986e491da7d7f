// Pairing: the plan of a comparison, of two sides that are open. It is the job of the conversion from the
// source into the layout of the tested side, made for any of that side's chunks; running it with a comparison
// in place of the writing says what differs. Two sides of the same names and shapes have a plan like all
// others, of boxes alone:
//
//   sides meet at           chunks of the tested side, under keys      job
//   items of a model        keys of a checkpoint; tensors of a folder  import; export
//   names                   tensors of the source with these names     reshard
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "convert/compare/checks/casts.h"
#include "convert/compare/differences/comparison.h"
#include "convert/jobs/chunk_jobs.h"

namespace mckpt::impl {

class StoreChunks;
struct Comparing;
struct Sides;
struct VerifyReport;

// Adds the check "padding", which names rows of the vocabulary that are not compared.
void name_padding(const std::string& rows, VerifyReport& report);

// Refers to the sides, which outlive it. Not copyable.
class Pairing {
 public:
  // Reports what cannot be paired: tensors that one side alone has, or with other headers than the conversion
  // gives them. Compares tensors that are not stored row by row by their values. Adds the check "types" if
  // any were asked for. Throws kNoSuchTensor for a type that was asked of no tensor.
  Pairing(const Sides& sides, const Comparing& c);
  Pairing(const Pairing&) = delete;
  ~Pairing();

  // Whether the tested side has the types that were asked for.
  bool as_asked() const { return as_asked_; }
  // The tensors whose types differ as the conversion intends.
  const std::vector<ComparedTypes>& casts() const { return casts_; }
  // For Comparison::run().
  ComparedChunks chunks() const;

 private:
  void pair_keys(const Comparing& c);
  void pair_tensors(const Comparing& c);
  void pair_names(const Comparing& c);

  const Sides& sides_;
  bool as_asked_ = true;
  std::vector<ComparedTypes> casts_;
  std::unique_ptr<const StoreChunks> made_;  // where the tested side has none
  const StoreChunks* chunks_ = nullptr;
  std::unique_ptr<const FusedTables> fused_;
  // By tensor of the tested folder: the source's tensors that have items of it.
  std::vector<std::vector<i64>> behind_;
  i64 tensors_ = 0;
  std::function<std::string(i32 key)> name_;
  std::function<ChunkJob(const ChunkList& some)> job_;
  std::function<std::vector<i64>(i32 key)> made_of_;
  std::function<bool(i32 tensor, i32 key)> by_values_;
  std::function<std::optional<i64>(i32 key)> rows_;
};

}  // namespace mckpt::impl
