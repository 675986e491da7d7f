// The parts of a plan's identity that several conversions have: the settings of a training run and of values
// under their names in the options, and the names of the parts of which only the digest is kept.
#pragma once

#include <string_view>

namespace mckpt::impl {

class FrozenNames;
class PlanIdentity;
struct FsdpSetup;
struct Grid;
struct ValueOptions;
struct VocabChoice;

inline constexpr std::string_view kSourceFiles = "the files of the source";
inline constexpr std::string_view kBesideFiles = "the files that are copied beside the tensors";
inline constexpr std::string_view kMapping = "the mapping of the model, with its config";
inline constexpr std::string_view kResult = "the tensors and files of the result";

void set_run(PlanIdentity& identity, const Grid& grid, const FsdpSetup& fsdp, const FrozenNames& frozen);
void set_vocab(PlanIdentity& identity, const VocabChoice& vocab);
void set_values(PlanIdentity& identity, const ValueOptions& values);

}  // namespace mckpt::impl
