// The check "contents": files that the list of a save of verl names beside the checkpoint that was opened,
// and that are lost.
#pragma once

#include <string>

namespace mckpt::impl {

class Store;
struct VerifyReport;

// Adds the check if anything is lost. `path`: what was asked for, which led to the store.
void check_contents(const std::string& path, const Store& store, VerifyReport& report);

}  // namespace mckpt::impl
