// The answer of `mckpt verify`: the checks with their findings, and a verdict. With --against the verdict is
// "equal", "equal in value" if types differ, "equal after a cast that rounds", "not equal", or "not proven
// equal" if something was not compared.
//
//   {"schema": "mckpt.verify/1", "ok": true, "path": "ckpt", "equal": true, "rounded": 0,
//    "checks": [{"name": "files", "status": "pass", "count": 2, "unseen": 0, "note": null}, ...],
//    "findings": [], "unread": [], "differences": []}
//
// "equal" and "differences" are there with --against only, "parts" for a folder with several checkpoints.
#pragma once

#include <string>

namespace mckpt::impl {

class JsonWriter;
class Output;
struct GlobalFlags;
struct Verified;

// -v: every finding of a check, and not only the first ones; -q: no line of a check that passes.
void write_verified_text(Output& out, const std::string& path, const Verified& verified,
                         const GlobalFlags& flags);
// The fields behind "path".
void write_verified_json(JsonWriter& json, const Verified& verified);

}  // namespace mckpt::impl
