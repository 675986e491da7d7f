// The files beside the weights, where they declare how the weights are quantised.
#pragma once

#include <string>

namespace mckpt::impl {

class Notes;
struct SideFiles;

// Takes out of the files what declares the weights quantised: hf_quant_config.json, and the entry of
// config.json, all other bytes of which stay. For a result whose tensors are not quantised. Returns whether
// there was anything. Throws kBadJson for a config.json that cannot be read.
bool leave_out_quantization(SideFiles& files);

// Says so behind the account of a conversion.
void note_config_without_quantization(Notes& notes);

}  // namespace mckpt::impl
