// In which form a checkpoint calls its layers, and what keeps its keys from being those of a pattern.
#pragma once

#include <vector>

#include "core/base/int.h"
#include "core/hybrid/names.h"

namespace mckpt::impl {

enum class DcpDialect : u8;
class Store;
struct LayerPattern;

struct KeyFault {
  std::string key;  // empty where a key is missing
  NameFault fault;
};

// Throws the faults as one error that names every key, each with its own code; the error has that of the
// first. Nothing where there are none.
void throw_faults(const std::vector<KeyFault>& faults, const Store& store, std::string_view help);

// What the model section has that is no name of the form, and the layers of the form that it lacks.
// `without_mixers`: it may lack the M layers, if it lacks all of them.
std::vector<KeyFault> misfits(const Store& store, DcpDialect dialect, const LayerNames& names,
                              bool without_mixers = false);

// The first of the forms that the model section has no fault in. Throws the faults of the first that its
// names look like. pre: there are forms.
LayerForm detect_form(const Store& store, DcpDialect dialect, const LayerPattern& pattern,
                      std::span<const LayerForm> forms, bool without_mixers = false);

}  // namespace mckpt::impl
