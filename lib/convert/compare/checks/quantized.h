// The check "scales" of `verify`: whether the codes and scales of quantised weights fit together, and whether
// scales are usable numbers. The check of values sees NaN among codes and scales as they are stored; here the
// rest is looked at:
//
//   FAIL  scales   61 tensors
//         problem[MC2016]: w.weight_scale_inv: the shape does not fit: blocks of 128x128 by config.json: expected [3, 2]
//         problem[MC2017]: w_scales: a scale is NaN: 1 of 96, the first at 17
//         warning[MC2017]: w.weight_scale_inv: a scale is zero: 2 of 6, the first at 3
#pragma once

namespace mckpt::impl {

class Store;
struct VerifyReport;

// Adds the check if any tensor of the store is quantised, or the config beside it says so. Reads all scales,
// and codes with padding. pre: the store is as it was opened, without a view.
void check_quantized(const Store& store, int threads, VerifyReport& report);

}  // namespace mckpt::impl
