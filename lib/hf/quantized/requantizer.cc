// The unit of work is a group of whole rows of blocks, at least 1 MiB of values where the matrix has as many.
//
// Where values are turned, a row of codes has a value of every row of values, so the unit is a whole matrix:
// its values are read once, by one thread, and its rows of codes are computed in bands by all threads that
// wait for any matrix:
//
//   values [H, 2I]   | band 0 | band 1 | band 2 |      thread A, B, A     codes [2I, H/2], rows of band 0, 1, 2
//
// A matrix is begun when no other is being read and there is memory for it, or when no other is in work.
#include "hf/quantized/requantizer.h"

#include <algorithm>
#include <cstring>

#include "core/items/transpose.h"
#include "hf/quantized/large_bytes.h"
#include "io/values/computed_bytes.h"

namespace mckpt::impl {
namespace {

constexpr i64 kUnitBytes = i64{1} << 20;
constexpr i64 kKeptBytes = i64{8} << 20;  // of rows that are kept because codes and scales are both wanted
constexpr std::size_t kLeastKept = 1;

}  // namespace

// Codes and scales of a unit: scales are those from scale_row on.
struct Requantizer::Rows {
  Unit unit;
  i64 scale_row = 0;
  LargeBytes codes, scales;

  i64 bytes() const { return codes.size() + scales.size(); }
  // The parts of some rows, counted from the unit's first. pre: blocks have one row.
  std::span<u8> codes_of(i64 first, i64 rows) { return part(codes, first, rows); }
  std::span<u8> scales_of(i64 first, i64 rows) { return part(scales, first, rows); }

 private:
  std::span<u8> part(const LargeBytes& of, i64 first, i64 rows) const {
    i64 row_bytes = of.size() / unit.rows;
    return {of.data() + first * row_bytes, static_cast<std::size_t>(rows * row_bytes)};
  }
};

// A matrix in work. The members that change are guarded by the requantizer's mutex.
struct Requantizer::Matrix {
  Unit unit;
  std::shared_ptr<Rows> rows;  // bands write to places of their own
  LargeBytes values;           // in the order of the store
  i64 bands = 0;               // 0: the values are not read yet
  i64 next = 0, active = 0;    // the first band that nobody has, and how many are being computed
  bool finished = false;

  i64 value_bytes() const { return values.size(); }
};

// Codes, or scales, of one tensor: whole units are computed, and cut.
class Requantizer::Bytes final : public ComputedBytes {
 public:
  Bytes(Requantizer& owner, const Requantized& how, bool scales)
      : ComputedBytes(size_of(how.layout, scales)), owner_(owner), how_(how), scales_(scales) {}

  i64 bytes_read() const override {
    return how_.layout.all_rows() * how_.layout.columns * dtype_bytes(owner_.coder_.type(how_), 1);
  }

 private:
  static i64 size_of(const QuantLayout& l, bool scales) {
    return scales ? l.matrices * l.scale_rows() * l.scale_row_bytes() : l.all_rows() * l.code_row_bytes();
  }

  // A row of values whose scales are in that row of the tensor of scales.
  i64 row_of_scales(i64 scale_row) const {
    const QuantLayout& l = how_.layout;
    return scale_row / l.scale_rows() * l.rows + scale_row % l.scale_rows() * l.block_rows;
  }

  void read_inside(i64 offset, std::span<u8> to) const override {
    const QuantLayout& l = how_.layout;
    const i64 row_bytes = scales_ ? l.scale_row_bytes() : l.code_row_bytes();
    while (!to.empty()) {
      i64 row = offset / row_bytes;
      Kept rows = held(scales_ ? row_of_scales(row) : row);
      const LargeBytes& bytes = scales_ ? rows->scales : rows->codes;
      i64 at = offset - (scales_ ? rows->scale_row : rows->unit.first) * row_bytes;
      std::size_t n = std::min(to.size(), static_cast<std::size_t>(bytes.size() - at));
      std::memcpy(to.data(), bytes.data() + at, n);
      to = to.subspan(n), offset += static_cast<i64>(n);
    }
  }

  // The rows of the last read are held for the next one. They are given up before others are waited for, so
  // that threads that wait hold nothing.
  Kept held(i64 row) const {
    Kept rows;
    {
      std::lock_guard lock(mutex_);
      rows = std::move(last_);
    }
    bool has = rows && row >= rows->unit.first && row < rows->unit.first + rows->unit.rows;
    if (!has) {
      rows = nullptr;
      rows = owner_.rows_with(how_, row, !scales_);
    }
    std::lock_guard lock(mutex_);
    return last_ = rows;
  }

  Requantizer& owner_;
  const Requantized& how_;
  bool scales_;
  mutable std::mutex mutex_;
  mutable Kept last_;
};

Requantizer::Requantizer(const Store& values, const Store* pattern, i64 matrix_bytes)
    : coder_(values, pattern), matrix_bytes_(matrix_bytes) {}

Requantizer::~Requantizer() = default;

std::shared_ptr<const ByteSource> Requantizer::codes(const Requantized& how) {
  return std::make_shared<Bytes>(*this, how, false);
}

std::shared_ptr<const ByteSource> Requantizer::scales(const Requantized& how) {
  return std::make_shared<Bytes>(*this, how, true);
}

Requantizer::Unit Requantizer::unit_with(const Requantized& how, i64 row, bool codes) const {
  const QuantLayout& l = how.layout;
  const i64 matrix = row / l.rows * l.rows, item = dtype_bytes(coder_.type(how), 1);
  // Scales that are given need no whole blocks.
  const i64 whole = how.rule ? l.block_rows : 1;
  i64 step = std::max<i64>(kUnitBytes / (l.columns * item) / whole, 1) * whole;
  if (how.turned) step = l.rows;
  const i64 first = matrix + (row - matrix) / step * step;
  // Where the pattern has scales, codes decide whether they stay.
  return {&how, first, std::min(step, matrix + l.rows - first), codes || how.pattern_scales >= 0};
}

Requantizer::Kept Requantizer::rows_with(const Requantized& how, i64 row, bool codes) {
  const Unit unit = unit_with(how, row, codes);
  {
    std::lock_guard lock(mutex_);
    if (Kept rows = find(unit)) return rows;
  }
  return how.turned ? compute_matrix(unit) : compute_rows(unit);
}

// pre: the mutex is held; for keep() too.
Requantizer::Kept Requantizer::find(const Unit& unit) const {
  for (const Kept& rows : kept_)
    if (rows->unit.how == unit.how && rows->unit.first == unit.first && (rows->unit.codes || !unit.codes))
      return rows;
  return nullptr;
}

void Requantizer::keep(Kept rows) {
  kept_.push_back(std::move(rows));
  i64 bytes = 0;
  for (const Kept& k : kept_) bytes += k->bytes();
  while (bytes > kKeptBytes && kept_.size() > kLeastKept) {
    bytes -= kept_.front()->bytes();
    kept_.erase(kept_.begin());
  }
}

// The memory of a result, which is counted as long as somebody has it.
std::shared_ptr<Requantizer::Rows> Requantizer::room_for(const Unit& unit) {
  const QuantLayout& l = unit.how->layout;
  std::shared_ptr<Rows> rows(new Rows, [this](Rows* r) {
    held_bytes_ -= r->bytes();
    delete r;
  });
  rows->unit = unit, rows->scale_row = l.scale_row_of(unit.first);
  const i64 scale_rows = l.scale_row_of(unit.first + unit.rows - 1) + 1 - rows->scale_row;
  if (unit.codes) rows->codes = LargeBytes(unit.rows * l.code_row_bytes());
  rows->scales = LargeBytes(scale_rows * l.scale_row_bytes());
  held_bytes_ += rows->bytes();
  return rows;
}

Requantizer::Kept Requantizer::compute_rows(const Unit& unit) {
  const i64 item = dtype_bytes(coder_.type(*unit.how), 1), row = unit.how->layout.columns * item;
  std::vector<u8> values(static_cast<std::size_t>(unit.rows * row));
  coder_.read_values(unit.how->values, unit.first * row, values);
  std::shared_ptr<Rows> rows = room_for(unit);
  coder_.code(*unit.how, unit.first, unit.rows, values, rows->codes, rows->scales);
  std::lock_guard lock(mutex_);
  keep(rows);
  return rows;
}

Requantizer::Kept Requantizer::compute_matrix(const Unit& unit) {
  std::unique_lock lock(mutex_);
  std::shared_ptr<Matrix> wanted;
  for (;;) {
    if (wanted && wanted->finished) return wanted->rows;
    if (Kept rows = find(unit)) return rows;
    auto at = std::ranges::find_if(in_work_, [&](const auto& m) {
      return m->unit.how == unit.how && m->unit.first == unit.first && (m->unit.codes || !unit.codes);
    });
    wanted = at == in_work_.end() ? begin(unit, lock) : *at;
    // Whatever is in work has to be done before this one can be.
    if (!help(wanted, lock)) changed_.wait(lock);
  }
}

// Takes the matrix into work and reads its values, without the lock. Null if there is no memory for it.
std::shared_ptr<Requantizer::Matrix> Requantizer::begin(const Unit& unit,
                                                        std::unique_lock<std::mutex>& lock) {
  const QuantLayout& l = unit.how->layout;
  const i64 item = dtype_bytes(coder_.type(*unit.how), 1), bytes = unit.rows * l.columns * item;
  // A store that computes values has as much memory again while it does.
  if (std::ranges::any_of(in_work_, [](const auto& m) { return m->bands == 0; })) return nullptr;
  i64 in_use = held_bytes_ + bytes + unit.rows * (l.code_row_bytes() + l.scale_row_bytes());
  for (const auto& m : in_work_) in_use += m->value_bytes();
  if (in_use > matrix_bytes_ && !in_work_.empty()) return nullptr;
  auto matrix = std::make_shared<Matrix>();
  matrix->unit = unit;
  matrix->rows = room_for(unit);
  matrix->values = LargeBytes(bytes);
  in_work_.push_back(matrix);
  lock.unlock();
  try {
    coder_.read_values(unit.how->values, unit.first * l.columns * item, matrix->values);
  } catch (...) {
    lock.lock();
    std::erase(in_work_, matrix);
    changed_.notify_all();
    throw;
  }
  lock.lock();
  matrix->bands = ceil_div(unit.rows, std::max<i64>(kUnitBytes / (l.columns * item), 1));
  changed_.notify_all();
  return matrix;
}

// Computes a band, without the lock: of the matrix that is wanted, or else of another one. Returns whether
// there was a band to compute. A band that throws ends its matrix: who else wants it begins it again, and
// meets the same.
bool Requantizer::help(const std::shared_ptr<Matrix>& wanted, std::unique_lock<std::mutex>& lock) {
  auto has_band = [](const std::shared_ptr<Matrix>& m) { return m && m->next < m->bands; };
  std::shared_ptr<Matrix> m = wanted;
  if (!has_band(m)) {
    auto at = std::ranges::find_if(in_work_, has_band);
    if (at == in_work_.end()) return false;
    m = *at;
  }
  const Requantized& how = *m->unit.how;
  const QuantLayout& l = how.layout;
  const i64 item = dtype_bytes(coder_.type(how), 1), step = ceil_div(m->unit.rows, m->bands);
  const i64 first = std::min(m->next++ * step, m->unit.rows), rows = std::min(step, m->unit.rows - first);
  m->active++;
  lock.unlock();
  std::exception_ptr error;
  try {
    // Rows of values are columns of codes.
    std::vector<u8> band(static_cast<std::size_t>(rows * l.columns * item));
    transpose({l.columns, rows, l.rows, 1, l.columns, 1}, item, m->values.data() + first * item, band.data());
    if (rows > 0)
      coder_.code(how, m->unit.first + first, rows, band, m->rows->codes_of(first, rows),
                  m->rows->scales_of(first, rows));
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  m->active--;
  if (error) m->next = m->bands, m->bands = -1;
  if (m->active == 0 && (m->bands < 0 || m->next == m->bands)) {
    m->finished = m->bands > 0;
    if (m->finished) keep(m->rows);
    std::erase(in_work_, m);
    m->values = LargeBytes();
    changed_.notify_all();
  }
  if (error) std::rethrow_exception(error);
  return true;
}

}  // namespace mckpt::impl
