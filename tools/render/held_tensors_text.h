// What a rank holds, as a table or as JSON.
#pragma once

#include <span>
#include <string>

#include "core/base/int.h"

namespace mckpt::impl {

class JsonWriter;
class Output;
struct HeldTensor;

// `boxes`: with the box that the rank holds. `digests`: one for each, or none.
void write_held(Output& out, std::span<const HeldTensor> held, bool boxes,
                std::span<const std::string> digests);
// One object. `sha256`: null where it was not asked for.
void write_held(JsonWriter& json, const HeldTensor& held, i64 rank, const std::string* sha256);

}  // namespace mckpt::impl
