// A card as JSON, mckpt.card/1. It is an in-toto statement too, with the manifest of OpenSSF model signing as
// its predicate: who signs it signs the files. docs/formats/card.md is the reference.
//
//   {"schema": "mckpt.card/1", "ok": true,
//    "_type": "https://in-toto.io/Statement/v1",
//    "subject": [{"name": "ckpt", "digest": {"sha256": "<over the digests of all files>"}}],
//    "predicateType": "https://model_signing/signature/v1.0",
//    "predicate": {"serialization": {...}, "resources": [
//     {"name": "model.safetensors", "algorithm": "sha256", "digest": "...", "bytes": 4096, "others": [[0, 304, "<crc>"]]},
//     ...]},
//    "tensors": [{"name": "w", ..., "chunks": [{"file": "model.safetensors", "offset": 304, ...}]}, ...], ...}
#pragma once

#include <string>

#include "io/card/card.h"

namespace mckpt::impl {

class InputFile;

// One file, one tensor a line.
std::string card_json(const Card& card);

// Reads what check_card() needs: files, tensors, names. Throws kBadCard for other JSON, for names that leave
// the folder, and for digests of files that do not fit the digest over them; kBadJson; with the file.
Card read_card(const InputFile& file);

}  // namespace mckpt::impl
