// The parts of a pickle that are written as text (protocol 0) or need decoding. All of them return nothing
// for malformed text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

// The literal 'a\n\x41' of STRING, without quotes and escapes.
std::optional<std::string> unquoted(std::string_view literal);
// The text of UNICODE, Latin-1 with \uXXXX, as UTF-8.
std::optional<std::string> raw_unicode_unescaped(std::string_view text);
// The result of text.encode("latin1") in Python: a byte for each character.
std::optional<std::string> latin1_encoded(std::string_view utf8);
// Decimal numbers of INT and LONG; decimal_wide() gives little-endian two's complement of any length.
std::optional<i64> decimal(std::string_view text);
std::optional<std::vector<u8>> decimal_wide(std::string_view text);  // little-endian two's complement
std::optional<double> decimal_float(std::string_view text);

// UTF-8, or UTF-8 with single surrogates, which Python's strings may contain.
bool is_python_utf8(std::string_view text);

}  // namespace mckpt::impl
