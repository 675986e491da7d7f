// The modes of `mckpt convert`, each in a file of its own, or several in one where they differ little.
// convert.cc has the table of their names. A mode receives the line of "convert MODE" and returns the exit
// status of the program:
//
//   convert_hf_to_fsdp.cc     hf-to-fsdp, to-fsdp  convert_reshard.cc    reshard
//   export.cc                 fsdp-to-hf           convert_layers.cc     group, ungroup, and to and from GPT
//   convert_file.cc           pt-to-safetensors, safetensors-to-pt
//   convert_own.cc            to-safetensors, to-dcp    convert_to_pt.cc      to-pt
//   convert_quantized.cc      dequantize, quantize      convert_to_mcore.cc   to-mcore
//   convert_archive.cc        to-hdf5, from-hdf5
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/error_code.h"
#include "core/base/int.h"

namespace mckpt::impl {

class CommandLine;
enum class QuantizeTo : u8;

// The names of all modes, in the order of the help.
std::vector<std::string> convert_modes();
// The mode that a word names, in its own spelling or in that of another program: "hf2fsdp" and "hf_to_fsdp"
// are hf-to-fsdp. "" if it names none.
std::string convert_mode_meant(std::string_view word);
// "convert to-mcore"; "export SRC DST", the command of which fsdp-to-hf is another name.
std::string command_of_mode(std::string_view mode);

Exit convert_dequantize(CommandLine& line);
Exit convert_from_hdf5(CommandLine& line);
Exit convert_fsdp_to_hf(CommandLine& line);
Exit convert_gpt_to_hybrid(CommandLine& line);
Exit convert_group(CommandLine& line);
Exit convert_hf_to_fsdp(CommandLine& line);
Exit convert_hybrid_to_gpt(CommandLine& line);
Exit convert_pt_to_safetensors(CommandLine& line);
Exit convert_quantize(CommandLine& line);
Exit convert_reshard(CommandLine& line);
Exit convert_safetensors_to_pt(CommandLine& line);
Exit convert_to_dcp(CommandLine& line);
Exit convert_to_hdf5(CommandLine& line);
Exit convert_to_mcore(CommandLine& line);
Exit convert_to_pt(CommandLine& line);
Exit convert_to_safetensors(CommandLine& line);
Exit convert_ungroup(CommandLine& line);

}  // namespace mckpt::impl
