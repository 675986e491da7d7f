// The parts of a pickle that are written as text (protocol 0) or need decoding.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

// Each gives nothing when the text is malformed.
std::optional<std::string> unquoted(std::string_view literal);            // 'a\n\x41' of STRING
std::optional<std::string> raw_unicode_unescaped(std::string_view text);  // \uXXXX of UNICODE, to UTF-8
std::optional<std::string> latin1_encoded(std::string_view utf8);         // what text.encode("latin1") gives
std::optional<i64> decimal(std::string_view text);
std::optional<std::vector<u8>> decimal_wide(std::string_view text);  // little-endian two's complement
std::optional<double> decimal_float(std::string_view text);

// Python's strings may hold single surrogates, which are not UTF-8.
bool is_python_utf8(std::string_view text);

}  // namespace mckpt::impl
