// The check "files" of a comparison: the files without which Megatron does not load a torch_dist folder, and
// whose loss changes no tensor: metadata.json and common.pt.
//
//   tested       source                                       finding
//   without it   with it, or no torch_dist                    a difference: a conversion writes the file
//   with it      torch_dist without it                        a difference
//   without it   torch_dist without it                        a warning: the two are alike
#pragma once

namespace mckpt::impl {

class Store;
struct VerifyReport;

// Adds the check if there is a finding. Returns whether there is no difference.
bool compare_load_files(const Store& tested, const Store& source, VerifyReport& report);

}  // namespace mckpt::impl
