// The check "model" of a folder whose config.json names a class with other tensors than its family's table
// has.
#pragma once

#include <string_view>

#include "io/verify/verify.h"

namespace mckpt::impl {

class CheckpointModel;
class Error;
class Store;
struct ModelFolder;

// With what the error lists: the tensors that are missing.
Finding finding_of(const Error& e);
// Facts in which its run and its config.json differ, which opening it has found: warnings.
std::vector<Finding> facts_unlike_config(const CheckpointModel& model);
// The check "model", without an answer.
Check not_compared(std::string_view why);

// Whether config.json names a class that its family's table does not describe. A map says itself which
// tensors the model has.
bool has_other_class(const Store& store, const ModelFolder& folder);
// Adds the check. A tensor that the class does not have is not loaded, and does no harm. pre:
// has_other_class().
void check_class(const Store& store, const ModelFolder& folder, VerifyReport& report);

}  // namespace mckpt::impl
