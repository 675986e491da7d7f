// The words for kinds of conversions, as C and Python name them. A kind has up to three:
//
//   fsdp    to-fsdp             hf-to-fsdp           short, of the struct (ToFsdp), of the program
//   ranks   to-ranks            to-pt                the files of Megatron's ranks, in a folder
//   pt      safetensors-to-pt   safetensors-to-pt    one .pt file
#pragma once

#include <string>
#include <string_view>

namespace mckpt::impl {

// The struct's word for a kind: "to-fsdp" for each of the three. Throws kUsage for any other word.
std::string_view kind_of(std::string_view word);

// `pt` and `to-pt` are easily taken for each other: `pt` needs the name of one file. (A folder of ranks that
// is named as a file is refused by plan_to_ranks().) Throws kUsage.
void check_target(std::string_view word, const std::string& target);

}  // namespace mckpt::impl
