// In which form a checkpoint names its layers, and which keys keep it from being one of a pattern. Forms
// (flat, member, logical, gpt, stacked) are explained in core/hybrid/names.h.
//
//   pattern [*-]M, keys layers.0.layers.1.mlp..., layers.1.mixer...     -->   member
//   pattern *-, key layers.1.mixer.A_log                                -->   a fault: layer 1 is an MLP
#pragma once

#include "convert/keys/key_section.h"
#include "core/hybrid/names.h"
#include "io/store/store.h"

namespace mckpt::impl {

// Why one key cannot belong to the pattern, or which layer has no key.
struct KeyFault {
  std::string key;  // empty where a key is missing
  NameFault fault;
};

// Throws the faults as one error that names every key with the code of its fault; the error has the code of
// the first fault. Does nothing if there are no faults.
void throw_faults(const std::vector<KeyFault>& faults, const Store& store, std::string_view help);

// The keys of the model section that are not names of the form, and the layers of the form without a key.
// `without_mixers`: the M layers may be missing, if all of them are.
std::vector<KeyFault> misfits(const Store& store, DcpDialect dialect, const LayerNames& names,
                              bool without_mixers = false);

// The first of the forms in which the model section has no fault. If there is none, throws the faults of the
// first form that the names look like. pre: `forms` is not empty.
LayerForm detect_form(const Store& store, DcpDialect dialect, const LayerPattern& pattern,
                      std::span<const LayerForm> forms, bool without_mixers = false);

}  // namespace mckpt::impl
