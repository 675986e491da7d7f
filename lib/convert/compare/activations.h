// Scales and zero points of activations and caches in a comparison. No value of a weight is computed with
// them, but whoever runs the quantised model computes with them: they are compared under their own names
// where the other side has them, or could have them, and counted where it cannot.
//
//   Q  k_proj.weight, k_proj.input_scale   Q2  k_proj.weight                    k_proj.input_scale is in Q alone
//   Q  k_proj.weight, k_proj.input_scale   values  k_proj.weight                 "1 scale of activations or caches"
#pragma once

#include <string>
#include <vector>

namespace mckpt::impl {

class Store;
struct Comparing;
struct VerifyReport;

// Makes tensors of the scales on either side that are compared, before the sides are opened as a model's. Two
// quantised sides: all of them; beside another side: those that it has. Returns the names of the others.
std::vector<std::string> take_activation_scales(Store& one, Store& other);

// Names the scales that are not compared, and adds the check "activations" with their number. pre: the
// comparison has not run.
void name_activation_scales(const std::vector<std::string>& names, const Comparing& c);

// Their number for the end of an answer: "1 scale of activations or caches was"; "" if there are none.
std::string counted_activation_scales(const VerifyReport& report);

}  // namespace mckpt::impl
