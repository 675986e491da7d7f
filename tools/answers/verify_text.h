// The answer of `mckpt verify`: the checks with their findings, and a verdict. With --against the verdict is
// "equal", "equal in value" if types differ, "equal after a cast that rounds", "not equal", or "not proven
// equal" if something was not compared.
#pragma once

#include <string>

namespace mckpt::impl {

class Output;
struct GlobalFlags;
struct Verified;

// -v: every finding of a check, and not only the first ones; -q: no line of a check that passes.
void write_verified_text(Output& out, const std::string& path, const Verified& verified,
                         const GlobalFlags& flags);

}  // namespace mckpt::impl
