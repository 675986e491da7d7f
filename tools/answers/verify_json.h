// The answer of `mckpt verify --json`.
//
//   {"schema": "mckpt.verify/1", "ok": true, "path": "ckpt", "equal": true, "rounded": 0,
//    "checks": [{"name": "files", "status": "pass", "count": 2, "unseen": 0, "note": null}, ...],
//    "findings": [], "unread": [], "differences": []}
//
// "equal" and "differences" are there with --against only, "parts" for a folder with several checkpoints.
#pragma once

namespace mckpt::impl {

class JsonWriter;
struct Verified;

// The fields behind "path".
void write_verified_json(JsonWriter& json, const Verified& verified);

}  // namespace mckpt::impl
