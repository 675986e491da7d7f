// The fields of results (lib/options/mckpt). A visitor is called with each, its name and a sentence:
//
//   fields(account, v)      v("tensors_in", 45, "number of tensors of the source")
//
// JSON of both doors, numbers of the C interface, and the rows of docs/json.md are made of them. The program
// writes the numbers of a run in the middle of its account.
#pragma once

#include <string_view>

#include "mckpt/account.h"
#include "mckpt/run_report.h"
#include "mckpt/statistics.h"

namespace mckpt::impl {

// The fields of an account up to `changed`, and the others.
template <typename Visit>
void made_fields(const mckpt::Account& a, Visit&& v) {
  v("tensors_in", a.tensors_in,
    "number of tensors of the source; `from-hdf5` copies whole files, and this and the numbers below are then of files");
  v("tensors_out", a.tensors_out, "number of tensors of the result");
  v("copied", a.copied, "tensors of the result that are bit for bit as in the source");
  v("fused", a.fused, "tensors of the result that are joined from several of the source");
  v("split", a.split, "tensors of the result that are one of several parts of a tensor of the source");
  v("dequantized", a.dequantized,
    "tensors of the result that are the values of one tensor, of which the source has codes and scales");
  v("quantized", a.quantized,
    "tensors of the result that are codes or scales, computed of one tensor of the source");
  v("tied", a.tied,
    "tensors that have the items of another tensor: they are left out, or, by export and between files, written in full");
  v("padded", a.padded, "tensors of the result with zeros at their ends");
  v("unpadded", a.unpadded,
    "tensors of the source whose last rows are padding of the vocabulary and are not in the result");
  v("changed", a.changed,
    "tensors of the result with other values or another type, those that are dequantized, quantized or merged with an adapter among them");
}

template <typename Visit>
void lost_fields(const mckpt::Account& a, Visit&& v) {
  v("dropped", a.dropped, "tensors of the source that the options leave out");
  v("dropped_objects", a.dropped_objects,
    "objects of the source that the options leave out, or that the result cannot have, such as an empty `output_layer._extra_state` of a model in groups, or what a training run has beside a model's tensors");
  v("invented", a.invented,
    "tensors of the result that are not made from the source: 0, because any other plan is refused (MC0302)");
}

template <typename Visit>
void fields(const mckpt::Account& a, Visit&& v) {
  made_fields(a, v);
  lost_fields(a, v);
}

// Values that a run has changed.
template <typename Visit>
void cast_fields(const mckpt::RunReport& r, Visit&& v) {
  v("rounded_norms", r.rounded_norms,
    "items (not tensors) of norms that are stored less one and were rounded by the subtraction or addition of 1, so the conversion back gives other values; where an interrupted run is continued, only items of this run; 0 for a dry run, which reads no items");
  v("became_infinite", r.became_infinite,
    "items that are infinite after a cast and were finite before it; 0 without `allow_overflow`, because no such result is published; where an interrupted run is continued, its items are counted too");
  v("became_zero", r.became_zero,
    "items that are zero after a cast and were not before it, because the data type of the result has no smaller values; where an interrupted run is continued, only items of this run");
}

template <typename Visit>
void fields(const mckpt::RunReport& r, Visit&& v) {
  v("output", r.output, "the folder or file that was made");
  v("bytes", r.bytes, "size of the result");
  v("bytes_read", r.bytes_read, "bytes read of the source's tensors; 0 for a dry run");
  v("bytes_written", r.bytes_written, "bytes written");
  cast_fields(r, v);
  v("overflowed", r.overflowed, "the names of the tensors in which items became infinite, most first");
  v("notes", r.notes, "notes and warnings of the run");
}

template <typename Visit>
void fields(const mckpt::Statistics& s, Visit&& v) {
  v("numbers", s.numbers, "number of values; a complex item has two");
  v("finite", s.finite,
    "number of values that are neither NaN nor infinite; extremes, mean, deviation, norm, zeros and histogram are about these values");
  v("min", s.min,
    "smallest finite value; null if no value is finite; exact for integers, up to 2^64-1 for `uint64`");
  v("max", s.max, "largest finite value, in the same way");
  v("mean", s.mean, "mean of the finite values");
  v("deviation", s.deviation, "standard deviation of the finite values, divided by n");
  v("l2", s.l2,
    "L2 norm: the root of the sum of squares. Describes the whole tensor, however it is sharded; sharding changes it by less than 1e-13 of it, and not at all for types of 16 bits or fewer. In files of Megatron's ranks it is of the part that one rank has. Of quantised weights `mckpt stats` reads the values that codes and scales stand for; Python and C read codes and scales as they are stored");
  v("zeros", s.zeros, "number of zeros");
  v("nan", s.nan, "number of NaN");
  v("infinite", s.infinite, "number of infinities");
}

// The name of a field in the JSON of the program, which has shorter ones for three.
constexpr std::string_view program_name(std::string_view field) {
  return field == "numbers" ? "count" : field == "deviation" ? "std" : field == "infinite" ? "inf" : field;
}

}  // namespace mckpt::impl
