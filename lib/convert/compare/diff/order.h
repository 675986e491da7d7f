// Values in another order: tensors that have nothing in common under their names, but whose values are on the
// other side all the same. A wrong order of experts, heads or halves is the most common mistake of a
// conversion, and looks like noise when it is compared item by item.
//
//   A  experts.0.up  1 2   experts.1.up  3 4         B  experts.0.up  3 4   experts.1.up  1 2
//      experts.0.up: "the same values as experts.1.up of B"
//   A  q_proj  rows r0 r1 r2 r3                      B  q_proj  rows r2 r3 r0 r1
//      q_proj: "the same rows in another order"      also columns; and the transpose of a square one
//
// A tensor that was written over another one has a hint as well (convert/compare/diff/siblings.h).
#pragma once

#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Observer;
class Store;
struct DiffRow;
struct OpenOptions;

// Fills the hints of rows whose tensors both sides have under the row's name, in whatever pieces, and which
// have little in common (cosine below 0.9), and of tensors that one side has under another name. Reads those
// tensors once more; the largest and those beyond the first thousand are left out. Returns how many these
// are.
i64 add_order_hints(const Store& a, const Store& b, std::vector<DiffRow>& rows, Observer& observer);
// The same of two checkpoints as their files have them.
i64 add_order_hints(const std::string& a, const std::string& b, const OpenOptions& files,
                    std::vector<DiffRow>& rows, Observer& observer);

}  // namespace mckpt::impl
