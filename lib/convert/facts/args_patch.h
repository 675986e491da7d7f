// New values in the args of a checkpoint. The args are a pickle, and a pickle can be made again only by a
// program that understands every class in it. Here the pickle stays byte for byte what it was, except for the
// values that describe on which grid, or with which layers, the checkpoint was written:
//
//   X 1a 00 00 00 "tensor_model_parallel_size" q 05 K 02        the value 2 (opcode K, one byte)
//   X 1a 00 00 00 "tensor_model_parallel_size" q 05 K 04        replace_integer(pickle, ..., 4)
//
// Nothing of the pickle is executed. The cost is a search for the key in the bytes.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "core/base/int.h"
#include "core/items/dtype.h"

namespace mckpt::impl {

// Puts `value` in place of the integer that is the value of the text key `name`. False, and the pickle
// unchanged, if that is not possible: the key must occur exactly once with an integer, the value must be in
// [0, 2^31), and in a pickle with frames (protocol 4 and later) the value must fit into the bytes of the old
// one.
bool replace_integer(std::string& pickle, std::string_view name, i64 value);

// A value of args; std::monostate is None, a type is torch's.
using ArgValue = std::variant<std::monostate, bool, i64, std::string, DType>;

// Gives the text key `name` another value, of any type, by a new entry directly behind the old one: of equal
// keys in a dictionary the last one counts, and other parts of the pickle that refer to the old value keep
// it. Entries that an earlier call added are replaced, and removed where the first value is wanted again. A
// key that is not there is added to the dictionary that contains `beside`. False, and the pickle unchanged,
// if that is not possible: the key must be in one dictionary only, with a plain value or a list of them, and
// the pickle in at most one frame.
bool put_value(std::string& pickle, std::string_view name, const ArgValue& value,
               std::string_view beside = {});

}  // namespace mckpt::impl
