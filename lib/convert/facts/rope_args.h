// How the args of Megatron say the way in which rotary embeddings are stretched, and what they cannot say:
//
//   {"rope_type": "linear", "factor": 2.0}     rotary_seq_len_interpolation_factor 2
//   {"rope_type": "dynamic", "factor": 2.0}    nothing, and a warning
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "convert/facts/megatron_args.h"

namespace mckpt::impl {

class Notes;
struct ModelConfig;
struct RopeEntries;
struct RunEntries;

// The argument of that name: how positions enter the attention.
std::string_view position_embedding_type(const ModelConfig& model, const RopeEntries& rope);
// The fields of the way in which the entries stretch rotary embeddings; none for a way that args cannot say.
std::vector<ArgField> stretching_fields(const ModelConfig& model, const RopeEntries& rope);
// A whole number as an integer, which many arguments of Megatron are.
ArgField::Value number_value(double value);
// Whether args give the model rotary embeddings at all.
bool is_rotary(const ModelConfig& model);
// Whether args have a field for the linear stretching of the rotary embeddings.
bool states_interpolation(const ModelConfig& model, const RunEntries& entries);
// A sentence about a share of each head that config.json gives and the model's class does not compute with;
// empty where config.json gives none, or the class computes with it.
std::string unread_share(const ModelConfig& model, const RopeEntries& rope);
// Adds a note or a warning for each way in which config.json stretches rotary embeddings that args cannot
// say. Every conversion that makes args has these notes.
void note_unsaid_rope(const ModelConfig& model, const RunEntries& entries, Notes& notes);

}  // namespace mckpt::impl
