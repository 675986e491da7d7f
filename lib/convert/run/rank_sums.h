// What each rank found out while it wrote its share, brought together.
#pragma once

#include <string>

namespace mckpt::impl {

class Comm;
class Error;
class LostValues;
class PartSums;
class WrittenSums;

// Rank 0 gets the sums of all. Both are collective.
void gather_sums(WrittenSums& sums, Comm& ranks);
void gather_sums(PartSums& sums, Comm& ranks);

// Every rank gets the losses of all. Collective.
void gather_losses(LostValues& lost, Comm& ranks);

// kCastOverflow, with the tensors in which finite values would become infinite.
Error overflow_error(const LostValues& lost, const std::string& result);

}  // namespace mckpt::impl
