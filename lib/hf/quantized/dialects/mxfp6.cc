// MXFP6 of compressed-tensors: NAME_packed of U8 has four E2M3 codes in three bytes, NAME_scale an exponent
// for 32 of them. Its E3M2 is written by no release.
#include "core/items/shape.h"
#include "hf/quantized/parts.h"

namespace mckpt::impl {
namespace {

constexpr i64 kCodes = 4, kBytes = 3;  // that belong together

// Bytes of the codes that one scale is for.
constexpr i64 kGroupBytes = PartFinder::kMxGroup / kCodes * kBytes;

}  // namespace

// MXFP4 has 16 bytes for a scale, MXFP6 24. A weight that fits neither is reported as MXFP4, unless all
// weights are declared to be of this kind.
bool is_mxfp6(const PartFinder& parts, const QuantizedTensor& packed) {
  PartFinder::Dims codes = parts.dims(packed.codes), scales = parts.dims(packed.scales);
  if (codes.size() != 2 || scales.size() != 2) return false;
  if (scales[1] > 0 && codes[1] % scales[1] == 0 && codes[1] / scales[1] == kGroupBytes) return true;
  const QuantConfig* config = parts.config();
  return config && config->format == "mxfp6-pack-quantized";
}

QuantizedTensor mxfp6_weight(const PartFinder& parts, QuantizedTensor q) {
  PartFinder::Dims d = parts.dims(q.codes);
  if (d[1] % kBytes != 0)
    parts.misfit(q.codes, "a row of codes of 6 bits ends within three bytes", "a multiple of 3 bytes",
                 dims_to_string(d));
  q.layout.codes = CodeFormat::kE2M3;
  q.layout.rows = d[0], q.layout.columns = d[1] / kBytes * kCodes;
  q.dims = {q.layout.rows, q.layout.columns};
  parts.set_groups(q, PartFinder::kMxGroup);
  return q;
}

}  // namespace mckpt::impl
