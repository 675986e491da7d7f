// Under --json and --jsonl an error is an object on stdout as well, so that a program which reads the answers
// need not read words:
//
//   {"schema": "mckpt.error/1", "ok": false, "error": {"code": "MC1001", "message": ..., "file": ..., ...}}
//
// The error is printed on stderr in words too, as always.
#pragma once

namespace mckpt::impl {

class Error;
class JsonWriter;
struct GlobalFlags;

// Writes nothing where no JSON was asked for, or where stdout has a part of an answer already. A text that
// stdout cannot take is given up: the exit status says it too.
void write_json_error(const GlobalFlags& flags, const Error& error) noexcept;

// The fields of the object of an error, which is open.
void write_error_fields(JsonWriter& json, const Error& error);

// The error that there is no memory left, written without allocating.
void write_json_out_of_memory(const GlobalFlags& flags) noexcept;

}  // namespace mckpt::impl
