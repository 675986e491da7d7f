// Options as other converters and Megatron's launch scripts spell them, for the error about an unknown
// option.
//
//   --target-tensor-parallel-size 2     there is no option '...'; did you mean --tp?
//   --world-size 8                      ... --dp D gives the number of ranks: tp * cp * pp * dp
//   --resume, of a single file          ... repeat the command without the option
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace mckpt::impl {

// Help for a user who gave the option `name` to a command with these options; "" if nothing is known of it.
std::string help_for_other_name(std::string_view name, std::span<const std::string> options);

}  // namespace mckpt::impl
