// The codes and scales of one quantised tensor, computed from values that a store has.
//
//   values  "w.weight" BF16 [300, 130]  -->  rows 128..255: scales row 1, codes of 128 rows
//
// Scales are made anew from the largest value of each block, or are taken from a *pattern*: the quantised
// model that the values came from. A block keeps its scale in the pattern if codes with that scale stand for
// exactly its values, and these codes wherever they are the pattern's; so what nobody changed gets the bytes
// that it had.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "hf/quantized/row_coder.h"
#include "io/file/file.h"

namespace mckpt::impl {

class Store;

// Computes; belongs to a view and is shared by its byte sources and all threads. Memory: a few MiB a thread,
// and for tensors with turned values what the constructor is given, or one matrix that is larger.
class Requantizer {
 public:
  // `pattern` may be null. Both outlive it. `matrix_bytes`: memory for tensors with turned values.
  Requantizer(const Store& values, const Store* pattern, i64 matrix_bytes = i64{96} << 20);
  ~Requantizer();

  // Codes or scales of the tensor as they are stored, row by row. `how` and the requantizer outlive the
  // source. Reading throws what RowCoder::code() throws.
  std::shared_ptr<const ByteSource> codes(const Requantized& how);
  std::shared_ptr<const ByteSource> scales(const Requantized& how);

 private:
  class Bytes;
  struct Rows;
  struct Matrix;
  // A unit of work: rows of a tensor from one on. Scales may be wanted without the codes.
  struct Unit {
    const Requantized* how;
    i64 first = 0, rows = 0;
    bool codes = true;
  };
  using Kept = std::shared_ptr<const Rows>;

  Kept rows_with(const Requantized& how, i64 row, bool codes);
  Unit unit_with(const Requantized& how, i64 row, bool codes) const;
  Kept find(const Unit& unit) const;
  void keep(Kept rows);
  std::shared_ptr<Rows> room_for(const Unit& unit);
  Kept compute_rows(const Unit& unit);
  Kept compute_matrix(const Unit& unit);
  std::shared_ptr<Matrix> begin(const Unit& unit, std::unique_lock<std::mutex>& lock);
  bool help(const std::shared_ptr<Matrix>& wanted, std::unique_lock<std::mutex>& lock);

  RowCoder coder_;
  i64 matrix_bytes_;
  std::atomic<i64> held_bytes_ = 0;  // of all Rows that somebody has
  mutable std::mutex mutex_;
  std::condition_variable changed_;  // matrices in work
  std::vector<std::shared_ptr<Matrix>>
      in_work_;             // whose values have been asked for, and whose rows are not complete
  std::vector<Kept> kept_;  // the one computed last is the last
};

}  // namespace mckpt::impl
