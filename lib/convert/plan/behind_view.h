// The facts that a conversion has about the files behind a view that computes tensors: values of codes and
// scales, or the other way round.
//
//   w.weight F8_E4M3, w.weight_scale_inv, w.input_scale   -->   w.weight BF16        3 tensors, 1 of them dropped
#pragma once

#include "core/base/int.h"

namespace mckpt::impl {

class AdaptedStore;
class LostValues;
class Store;
class ValueFaults;
struct Conversion;
struct Planned;

// The account counts the tensors of the files, and not the tensors of the view.
struct BehindView {
  i64 tensors = 0;                // of the files
  i64 dropped = 0;                // of these: for nothing in the result, such as scales of activations
  ValueFaults* faults = nullptr;  // among codes and scales that are decoded; null: nothing is
};

// Adds the finite values that the view behind the conversion, if there is one, has made infinite so far.
void add_losses(const Conversion& conversion, LostValues& lost);

// If the store is a view over quantised weights, or one with an adapter in it, sets all that the conversion
// says about what is computed. pre: the proof's source is set, which has the view's tensors under their
// names, maybe in another order.
void note_view(Planned& conversion, const Store& store);
// note_view() of a base with an adapter in it, and what else a conversion says of the adapter: its folder is
// a source, and its files belong to the identity, which is set.
void add_adapter(Conversion& conversion, const AdaptedStore& view);

}  // namespace mckpt::impl
