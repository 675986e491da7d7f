// The kinds of conversions, for all doors in one table. A kind has a name, which is the mode of `mckpt
// convert`, a short word of C and Python, and other words for the same:
//
//   name               word         others                     what is made
//   to-fsdp            fsdp         hf-to-fsdp                 hf-to-fsdp is a mode, too: it reads models alone
//   to-pt              ranks        pt to-ranks                the files of Megatron's ranks, in a folder
//   safetensors-to-pt  torch-file                              one .pt file
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "mckpt/plain_plans.h"
#include "mckpt/plans.h"

namespace mckpt::impl {

class FieldVisitor;

using AnyConversion = std::variant<ToFsdp, ToMcore, ToHf, Reshard, ToRanks, Relayer, ToSafetensors, ToDcp,
                                   Dequantize, Quantize, ToHdf5, FromHdf5, PtToSafetensors, ToPt>;

struct ConversionKind {
  std::string_view name;     // of the mode
  std::string_view word;     // of C and Python; "": another row has it, and this one is a mode alone
  std::string_view others;   // more words
  std::string_view summary;  // of the mode's help page
  std::string_view makes;    // what the result is, for Python
  AnyConversion (*empty)();  // no field is set
  bool shares_work = true;   // among ranks; else rank 0 does all
  bool resumes = true;       // an interrupted run can be continued
};

// In the order in which the program lists its modes.
std::span<const ConversionKind> conversion_kinds();
// The row of a mode; null if there is none of the name.
const ConversionKind* conversion_mode(std::string_view name);
// The row of a word of C and Python, of whatever kind. Throws kUsage for another one.
const ConversionKind& conversion_of_word(std::string_view word);

void fields(AnyConversion& conversion, FieldVisitor& v);
// SRC and DST of the struct.
const std::string& source_of(const AnyConversion& conversion);
const std::string& target_of(const AnyConversion& conversion);

}  // namespace mckpt::impl
