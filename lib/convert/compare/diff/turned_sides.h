// Pairs that can be compared in one order alone: the tensors of a Megatron checkpoint with what importing a checkpoint
// with the model's own names would write. Given the other way round they are turned, and what is found is turned back,
// so that the answer and every refusal are those of the first order.
#pragma once

#include <string>

namespace mckpt::impl {

class Store;
struct OpenOptions;
struct VerifyReport;

// Whether `a` has the model's own names, and at `b` is a checkpoint of Megatron's. Opens `b` only where the first holds.
bool has_turned_sides(const Store& a, const std::string& b, const OpenOptions& opening);

// Exchanges the sides of what was found.
void turn_sides(VerifyReport& report);

}  // namespace mckpt::impl
