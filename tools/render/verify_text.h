// The answer of `mckpt verify`: the checks with their findings, and a verdict.
#pragma once

#include <string>

namespace mckpt::impl {

class Output;
struct Verified;

// `all`: every finding of a check, and not only the first ones.
void write_verified_text(Output& out, const std::string& path, const Verified& verified, bool all);
void write_verified_json(Output& out, const std::string& path, const Verified& verified);

}  // namespace mckpt::impl
