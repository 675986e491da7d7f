// The findings of each rank while it wrote its share, brought together: checksums of the written bytes for
// the manifest, and values that casts lost.
//
//   rank 0   sums of files 0, 1    2 zeros              -->   sums of files 0 to 3     2 zeros, 1 infinite in "w"
//   rank 1   sums of files 2, 3    1 infinite in "w"          (its own sums)           2 zeros, 1 infinite in "w"
#pragma once

#include <string>

namespace mckpt::impl {

class Comm;
class Error;
class LostValues;
class PartSums;
class WrittenSums;

// Rank 0 gets the sums of all ranks; the other ranks keep their own. Both functions are collective.
void gather_sums(WrittenSums& sums, Comm& ranks);
void gather_sums(PartSums& sums, Comm& ranks);

// Collective: every rank gets the losses of all ranks.
void gather_losses(LostValues& lost, Comm& ranks);

// The error kCastOverflow, with the tensors in which finite values would become infinite.
Error overflow_error(const LostValues& lost, const std::string& result);

}  // namespace mckpt::impl
