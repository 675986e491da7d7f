// Pieces stay boxes of their tensors, with other axes.
#include "convert/own/boxed_tensor.h"

#include <algorithm>
#include <iterator>

namespace mckpt::impl {
namespace {

PieceAxis* axis_to(StorePiece& piece, std::size_t dim) {
  auto at = std::ranges::find(piece.axes, static_cast<i64>(dim), &PieceAxis::to_dim);
  return at == piece.axes.end() ? nullptr : &*at;
}

// The indices that the piece has; false if none.
bool narrow(PieceAxis& axis, const BoxedTensor::Indices& indices) {
  const i64 before = axis.to - indices.first;  // of the piece's first index
  const i64 begin = before <= 0 ? 0 : ceil_div(before, indices.step);
  const i64 behind = before + axis.count;
  const i64 end = behind <= 0 ? 0 : std::min(indices.count, ceil_div(behind, indices.step));
  if (begin >= end) return false;
  axis.first += (begin * indices.step - before) * axis.step;
  axis.count = end - begin;
  axis.step *= indices.step;
  axis.to = begin;
  return true;
}

}  // namespace

BoxedTensor BoxedTensor::whole(const Store& store, i64 tensor) {
  std::span<const i64> of = store.dims(tensor);
  BoxedTensor out{{of.begin(), of.end()}, {{tensor}}};
  for (i64 d = 0; d < std::ssize(of); d++) out.pieces[0].axes.push_back({0, of[d], 1, d, 0});
  return out;
}

BoxedTensor BoxedTensor::every(std::size_t dim, Indices indices) const {
  BoxedTensor out{dims, {}};
  out.dims[dim] = indices.count;
  for (StorePiece piece : pieces)
    if (narrow(*axis_to(piece, dim), indices)) out.pieces.push_back(std::move(piece));
  return out;
}

BoxedTensor BoxedTensor::at(std::size_t dim, i64 index) const {
  BoxedTensor out = every(dim, {index, 1});
  out.dims.erase(out.dims.begin() + static_cast<std::ptrdiff_t>(dim));
  for (StorePiece& piece : out.pieces)
    for (PieceAxis& axis : piece.axes) {
      if (axis.to_dim == static_cast<i64>(dim))
        axis.to_dim = -1;
      else if (axis.to_dim > static_cast<i64>(dim))
        axis.to_dim--;
    }
  return out;
}

BoxedTensor BoxedTensor::swapped(std::size_t one, std::size_t other) const {
  BoxedTensor out = *this;
  std::swap(out.dims[one], out.dims[other]);
  for (StorePiece& piece : out.pieces) std::swap(axis_to(piece, one)->to_dim, axis_to(piece, other)->to_dim);
  return out;
}

BoxedTensor BoxedTensor::interleaved(std::size_t dim, i64 block) const {
  BoxedTensor out{dims, {}};
  const i64 half = block / 2;
  out.dims[dim] = 0;
  for (i64 from = 0; from < dims[dim]; from += block)
    for (i64 i = 0; i < half; i++) out.append(dim, every(dim, {from + i, 2, half}));
  return out;
}

void BoxedTensor::append(std::size_t dim, BoxedTensor other) {
  for (StorePiece& piece : other.pieces) axis_to(piece, dim)->to += dims[dim];
  dims[dim] += other.dims[dim];
  std::ranges::move(other.pieces, std::back_inserter(pieces));
}

void BoxedTensor::append_zeros(i64 rows) {
  StorePiece zeros{pieces[0].tensor};
  zeros.to.assign(dims.size(), 0);
  zeros.to[0] = dims[0];
  zeros.zeros = dims;
  zeros.zeros[0] = rows;
  dims[0] += rows;
  pieces.push_back(std::move(zeros));
}

}  // namespace mckpt::impl
